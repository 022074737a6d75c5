"""The Transformer: the model, what one update of its weights computes, and the searches. Torch alone.

model/         the Transformer, equation by equation
training/      what one update computes
decoding/      searches for an output
out_of_memory  how too little memory is told from other failures
"""
