"""From a model's next-token scores to sequences of tokens. Read in this order:

config       a run's defaults
search       what a search is: a step and a state go in, hypotheses come out
greedy       the likeliest token each time
sampling     a token at random, as likely as the model says
beam         the likeliest hypotheses side by side; a run's own search
constrained  a beam whose hypotheses must have given phrases (`phrases`)
fast/        the model written out for decoding, whose step a search calls
"""
