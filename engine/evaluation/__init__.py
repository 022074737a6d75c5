"""How good a model is on a set: loss and perplexity of its references, and scores of its translations."""
