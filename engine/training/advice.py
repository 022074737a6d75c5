"""What makes it doubtful that a training is worth its time, said before it begins."""

from ...data.store import TokenStore
from ...seq2seq.training.config import TrainingConfig

FEW_PAIRS = 1_000
"""Of fewer, a translator learns phrases, but no language."""
FEW_DEV_PAIRS = 50
"""The scores of fewer say little about other sentences."""
MANY_EPOCHS = 1_000
MANY_IDENTICAL = 0.5
"""Share of pairs with the same text on both sides."""
MANY_COPIES = 0.3
"""Share of pairs that another pair repeats."""


def doubts(train: TokenStore, dev_pairs: int, training: TrainingConfig) -> list[str]:
    """Lines for people, none where all seems well.

    Args:
        train: The training data.
        dev_pairs: The number of validation pairs, or texts.
        training: How long it is to go on.
    """
    return [*_of_size(train, dev_pairs), *_of_text(train), *_of_length(train, training)]


def _of_size(train: TokenStore, dev_pairs: int) -> list[str]:
    unit = train.report.unit
    found: list[str] = []
    if len(train) < FEW_PAIRS and not train.report.text_only:
        found.append(
            f"{len(train):,} training {unit}s are very few: a translator learns their words and phrases from them,"
            " but hardly how to translate other sentences; some 5,000 make a difference"
        )
    if dev_pairs < FEW_DEV_PAIRS:
        found.append(
            f"the validation set has {dev_pairs:,} {unit}{'s' if dev_pairs != 1 else ''}: its scores say little, and"
            " which checkpoint is the best is left to chance; take some 200 or more"
        )
    return found


def _of_text(train: TokenStore) -> list[str]:
    found: list[str] = []
    identical = train.report.identical / train.report.kept
    if identical > MANY_IDENTICAL and not train.report.text_only:
        found.append(f"{identical:.0%} of the training pairs have the same text on both sides; are the files right?")
    copies = train.report.copies / train.report.kept
    if copies > MANY_COPIES:
        found.append(f"{copies:.0%} of the training {train.report.unit}s are copies of others")
    return found


def _of_length(train: TokenStore, training: TrainingConfig) -> list[str]:
    """Counts an update as full; where only a time or a patience ends the training, nothing is known yet."""
    if training.max_steps is None:
        return []
    found: list[str] = []
    if training.max_steps <= training.warmup_steps:
        found.append(
            f"the learning rate does not come to its peak: training.warmup_steps is {training.warmup_steps:,}, and"
            f" there are {training.max_steps:,} updates in all"
        )
    tokens = train.report.tgt_tokens + len(train)  # each ends with eos
    epochs = training.max_steps * training.max_tokens_per_batch * training.grad_accum_steps / tokens
    if epochs > MANY_EPOCHS:
        found.append(
            f"{training.max_steps:,} updates show each {train.report.unit} about {round(epochs, -2):,.0f} times:"
            " the model will know them by heart; fewer updates are enough (--max-steps)"
        )
    return found
