"""What a run is, on disk and in time. Read in this order:

    directory    a run directory, and the answer to every question about it
    checkpoint   the files of a checkpoint: complete or absent, each with its hash
    weights      their tensors, to models and back
    state        where training stood when a checkpoint was written
    machine      what belongs to each architecture: settings that suit it, and what it minimises
    plan         how many updates a run has: a number, or as many as fit its time; `finish` tells it to end now
    setup        precision, processes, threads: settled at the first start (`products` measures)
    prepare      texts to a vocabulary and tokenised stores
    assemble     model, loss and optimizer, put together for the leader and for those that follow it
    validation   scores of the model midway
    session      updates, one after the other, and between them logging, validating, saving
    log          what is written of a run under way: metrics.jsonl, timing.jsonl, the learning curve (`curve`)
    leader       all that the process that was started has to do with them
    start        the leader of a new run, or of one that goes on
    train        all of it

`trained` reads a run that is to be used. `describe` is behind `tfm info`, `dry_run` behind `tfm train --dry-run`
(`rehearsal` measures). What an update computes is in `training`, what the processes tell each other in `parallel`.
"""
