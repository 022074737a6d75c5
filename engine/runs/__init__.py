"""What a run is, on disk. Read in this order:

directory    a run directory, and the answer to every question about it
checkpoint   the files of a checkpoint: complete or absent, each with its hash; where training stood
exported     what tfm export made of a run for CTranslate2, which translates as the run does
weights      their tensors, to models and back
load         a run that is to be used: model and tokenizer; what translator, generator and embedder share
find         the run that a command means
listing      what a list of runs says of each
log          what is written of a run under way: metrics.jsonl, timing.jsonl, the learning curve, TensorBoard
curves       losses and scores over the steps: of one run or several, as curves and as a picture
verdict      how good a model is and what would help
"""
