"""One forward pass of a trained model, number by number. Read in this order:

trace         every intermediate result, taken from the modules of the model while it computes
searches      greedy search, beam search and sampling, watched: which hypotheses they kept and cut
probes        each layer read as if it were the last one; the model without one head
stations      formulas, shapes, sources, and which numbers belong to them
walk          the stations of each architecture, in order
questions     a question at some stations, answered from the numbers
explanation   all of this for one model and one sentence
page, text    shown as one HTML file, or in a terminal

The page is drawn by page.js and machine.js. On a live page try.js takes another sentence, and live.js and questions.js,
beside the engine of `engine/browser`, compute what is shown of it.
"""
