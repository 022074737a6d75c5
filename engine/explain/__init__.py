"""One forward pass of a trained model, number by number. Read in this order:

trace         every intermediate result, taken from the model's own modules while it computes
searches      greedy search, beam search and sampling, watched: what they kept and what they cut
probes        what each layer would have said; what happens without one head
stations      the walk: formulas, shapes, sources, and which numbers belong to them
questions     a question at some stations, answered from the numbers
explanation   all of this for one model and one sentence
page, text    shown as one HTML file, or in a terminal
"""
