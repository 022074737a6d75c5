"""What a run is, on disk. Read in this order:

directory    a run directory, and the answer to every question about it
checkpoint   the files of a checkpoint: complete or absent, each with its hash
weights      their tensors, to models and back
state        where training stood when a checkpoint was written
load         a run that is to be used: model and tokenizer
find         the run that a command means
log          what is written of a run under way: metrics.jsonl, timing.jsonl, the learning curve (`curve`)
verdict      how good a model is and what would help
describe     what `tfm info` says
"""
