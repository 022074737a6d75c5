"""How good a model is on a set. Read in this order:

reading     test sets, from files and data sets
test_set    a run translates one, and all that is said of it
loss        loss and perplexity of references; forced scores of translations that are given
scores      BLEU and other metrics, of sets and of sentences; which of two outputs is better
retrieval   how often a sentence finds its translation
checks      `tfm check`: whether a model does what a Transformer must
"""
