"""Options of other tools, typed by habit, and settings given as options: what to say here instead."""

_SETTINGS = {
    "learning_rate": ("lr", "peak_lr"),
    "max_tokens_per_batch": ("max_tokens", "batch_tokens"),
    "grad_accum_steps": ("accum", "update_freq", "gradient_accumulation", "gradient_accumulation_steps"),
    "max_grad_norm": ("clip", "clip_norm", "grad_clip", "gradient_clip_val"),
    "warmup_steps": ("warmup", "warmup_updates"),
    "schedule": ("scheduler", "lr_scheduler", "lr_scheduler_type"),
    "optimizer": ("optim",),
    "validate_every": ("eval_every", "eval_steps", "validate_interval", "valid_steps"),
    "checkpoint_every": ("save_every", "save_steps", "save_interval"),
    "log_every": ("log_interval", "logging_steps"),
    "keep_checkpoints": ("save_total_limit", "keep_last"),
    "ranks": ("workers", "num_workers", "processes", "threads", "gpus", "world_size"),
    "d_model": ("dim", "hidden", "hidden_size", "hidden_dim", "embed_dim", "emb_size", "embedding_size", "model_dim"),
    "d_ff": ("ffn", "ffn_dim", "ff_size", "feed_forward", "dim_feedforward"),
    "num_heads": ("heads", "n_heads", "nhead", "attention_heads"),
    "max_seq_len": ("max_len", "max_length", "max_seq_length", "block_size"),
    "architecture": ("arch",),
    "tie_embeddings": ("share_embeddings", "share_all_embeddings"),
}
"""Each setting with the names that other tools have for it."""

_TRAIN = {
    ("batch", "batch_size", "bs"): "--set training.max_tokens_per_batch=N, which counts tokens, not sentences",
    ("epochs", "epoch", "num_epochs", "n_epochs", "max_epochs", "max_epoch", "num_train_epochs"): "--max-steps N counts"
    " updates, and --max-time 20m time; without either a run ends by itself",
    (
        "layers",
        "num_layers",
        "n_layers",
        "nlayers",
    ): "--set model.num_encoder_layers=3 --set model.num_decoder_layers=3",
    ("gpu", "cuda", "use_cuda", "no_cuda"): "--device cuda or --device cpu; without it a GPU is used if there is one",
    ("fp16", "bf16", "amp", "mixed_precision"): "--precision bf16; without it the faster one is measured and taken",
    ("save_dir", "model_dir", "output_dir", "output", "model", "name", "log_dir"): "--run RUN is where the model lies",
    ("train", "train_file", "input", "file", "files", "corpus", "dataset"): "--src FILE --tgt FILE, or --data FILE",
    ("valid", "validation", "val", "eval", "dev_file"): "--dev-src FILE --dev-tgt FILE, or --dev FILE",
    (
        "resume",
        "continue",
        "restart",
        "load",
    ): "the same command without it continues a run; --init-from RUN starts from another one's weights",
    ("source",): "--src FILE",
    ("target",): "--tgt FILE",
}
_READING = {
    ("model", "model_path", "model_dir", "path"): "--run RUN is where the model lies",
    ("src", "source", "file", "in"): "--input FILE",
    ("out", "target", "tgt"): "--output FILE",
    ("data", "document", "po", "xliff"): "--input FILE",
    ("num_beams", "beams"): "--beam-size N",
    ("gpu", "cuda"): "--device cuda",
    ("batch", "batch_size"): "none is needed: as much as fits is translated together",
    ("max_length", "max_len"): "none is needed: the run's decoding.max_length_factor and max_length_offset hold",
}
_EVALUATE = _READING | {
    ("ref", "refs", "reference", "references", "gold"): "--tgt FILE",
    ("hypothesis", "hypotheses", "sys", "system"): "--hyp FILE",
}
"""What is said of other options, in training, elsewhere, and in `tfm evaluate`."""


def meant(option: str, command: str) -> str:
    """What to type instead of an option that a command does not have; empty if nobody knows what it means."""
    name = option.lstrip("-").partition("=")[0].replace("-", "_")
    for names, words in {"train": _TRAIN, "evaluate": _EVALUATE}.get(command, _READING).items():
        if name in names:
            return words
    if command != "train":
        return ""
    from ..configs.loader import nearest_setting

    setting = nearest_setting(next((known for known, names in _SETTINGS.items() if name in names), name))
    return f"--set {setting}=VALUE" if setting else ""
