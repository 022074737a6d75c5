"""What a program needs of the machine: errors, durable files, processes, signals, messages. Nothing here knows text or
models."""
