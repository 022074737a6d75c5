"""A training, from settings to checkpoints. Read in this order:

train       all of it: opens a run, begins it, fits it, says how it ended
run         what a training consists of, and the order in which that is found out
prepare     texts to a vocabulary and tokenised stores
plan        how many updates there are: a number, or as many as fit a time; `finish` tells a run to end now
setup       precision, processes, threads: settled at the first start (`precision` measures)
build       objective, model, loss and optimizer of a configuration, in a trainer
fit         rate, update, log; validate and save; when the rate falls (`patience`), and when the run stops
validation  scores of the model midway; those of a `language_model` and of an `encoder` stand apart
follower    what every process does that is not the leader
dry_run     what a training would take
"""
