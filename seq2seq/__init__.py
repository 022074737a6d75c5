"""The Transformer: the model, its decoding, its evaluation and its training."""
