"""Text in, integer batches out. Nothing here knows a model, and nothing here imports torch."""
