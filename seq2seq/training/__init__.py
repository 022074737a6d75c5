"""The mathematics of training: what one update does to the weights. Read in this order:

    config       settings
    loss         cross-entropy with label smoothing; the loss of predicting each next token
    contrastive  the loss of finding the right translation among others, of an encoder_only model
    masking      the loss of guessing hidden tokens, of the same
    schedule     the learning rate as a function of the step
    progress     where training stands
    batch        a batch; the batches of an update, and who computes which part of them
    optimizer    AdamW, `muon` for the matrices inside the layers, the moving average of the weights
    update       one update, out of all these: dropout seeded, gradients added, normalised, clipped, applied
    low_memory   what it does where a batch does not fit into memory

No texts, no files, no processes: those are in `engine`.
"""
