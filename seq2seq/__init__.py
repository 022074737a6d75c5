"""The Transformer: the model, what one update of its weights computes, and the searches. Torch alone."""
