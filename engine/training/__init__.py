"""A training, from settings to checkpoints. Read in this order:

purpose      what belongs to each architecture: settings that suit it, and what it minimises
prepare      texts to a vocabulary and tokenised stores
plan         how many updates a run has: a number, or as many as fit its time; `finish` tells it to end now
setup        precision, processes, threads: settled at the first start (`precision` measures)
assemble     model, loss and optimizer, put together for the leader and for those that follow it
validation   scores of the model midway
session      updates, one after the other, and between them logging, validating, saving
leader       all that the process that was started has to do with them
follower     what every other process does
start        the leader of a new run, or of one that goes on
train        all of it
dry_run      what a run would take (`rehearsal` measures)
"""
