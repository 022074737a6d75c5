"""Training: loss, schedule, optimizer, the loop, and `run`, which puts a training run together."""
