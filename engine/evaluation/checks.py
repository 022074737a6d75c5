"""Self-tests of a trained model: what must hold of every Transformer, measured on this one (`tfm check`).

Each check compares two computations that must agree, or a figure with its bound. The checks know nothing of how the
model was trained: they take it as it is on disk.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...data.batching import Row, training_rows
from ...data.cleaning import clean
from ...data.corpus import Pair
from ...data.tokenizer import BOS_ID, EOS_ID, FIRST_TEXT_ID, PAD_ID, UNK_ID, Tokenizer, Vocabulary
from ...seq2seq.decoding.fast import FastTransformer, arrange
from ...seq2seq.decoding.fast.decoder_only import FastDecoderOnly
from ...seq2seq.decoding.greedy import Greedy
from ...seq2seq.decoding.search import Hypothesis, Task
from ...seq2seq.model.attention import MultiHeadAttention, attention_maps
from ...seq2seq.model.decoder_only import DecoderOnly
from ...seq2seq.model.embedding import Embedding
from ...seq2seq.model.encoder_decoder import Transformer
from ...seq2seq.model.encoder_only import EncoderOnly
from ...seq2seq.model.masks import pad
from ...seq2seq.training.batch import Batch
from .loss import evaluate_loss

SENTENCES = 32
"""Sentences that are looked at."""
TOLERANCE = 1e-4
"""Largest difference of two ways to compute the same, as a share of the largest number: float32 rounds otherwise."""
SHUFFLED = 0.1
"""Nats for each piece by which the loss must rise with sources that belong to other targets."""
LONGEST_OUTPUT = 64
"""Most pieces of the outputs that are searched for."""
_STRANGE = (
    "",
    "  two  spaces ",
    "Ünïcödé ﬁ \u00a0x",
    "漢字とかな",
    "🙂 👩‍👩‍👧",
    "%s {name} <b>&amp;</b>",
    "\u2581 \ue000 \ue000a",
    "١٢٣",
)
"""Texts that a vocabulary with bytes must give back, too."""


@dataclass(frozen=True)
class Check:
    """What one check has found: in words with the figure, and whether it is within its bound.

    `passed` and `value` are None where the check does not apply, as `found` says.
    """

    name: str
    found: str
    value: float | None
    passed: bool | None


@torch.inference_mode()
def check_model(model: Any, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> Iterator[Check]:
    """All checks that apply to a model, which is in evaluation mode, one after the other.

    The pairs are best those of a validation set; texts alone have empty sources. Without any, sentences are made up,
    which is enough for all checks but the last.
    """
    ids = _encoded(model, tokenizer, pairs or _made_up(tokenizer))
    others = _exchanged(ids if pairs else [])
    yield _round_trip(tokenizer, [text for pair in pairs for text in pair])
    if isinstance(model, EncoderOnly):
        yield from _checks_of_encoder(model, [src or tgt for src, tgt in ids])  # it reads a text of either side
        yield _NO_PAIRS if others is None else _tells_pairs(model, *others)
    else:
        yield from _checks_of_writer(model, tokenizer, training_rows(ids))
        yield _NO_PAIRS if others is None else _uses_source(model, *others)


def _checks_of_encoder(model: EncoderOnly, texts: list[list[int]]) -> Iterator[Check]:
    texts = [text for text in texts if text]
    src = _sources(model, texts)
    yield _padding_of_texts(model, texts)
    yield _softmax_rows(model, lambda: model(src))
    blind = copy.deepcopy(model)
    yield _permutation(blind, blind.embedding, blind.hidden_states, src)


def _checks_of_writer(model: Transformer | DecoderOnly, tokenizer: Tokenizer, rows: list[Row]) -> Iterator[Check]:
    batch = Batch.of(rows, device=_device(model))
    yield _causality(model, batch)
    yield _padding(model, rows, batch)
    fast = arrange(model, tokenizer.tgt.forbidden_ids())
    yield _cached(model, fast, batch)
    yield _search(model, fast, tokenizer, batch)
    yield _softmax_rows(model, lambda: model(batch.src, batch.tgt_in))
    if isinstance(model, DecoderOnly):
        yield Check("order", "not checked: a causal stack knows the order of its tokens without positions", None, None)
    else:
        blind = copy.deepcopy(model)
        yield _permutation(blind, blind.src_embedding, blind.encode, batch.src)


def _made_up(tokenizer: Tokenizer) -> list[Pair]:
    """Pairs of pieces that follow each other in the vocabularies: no language, but text."""
    sides = tokenizer.src, tokenizer.tgt

    def text(vocabulary: Vocabulary, row: int) -> str:
        count = len(vocabulary) - FIRST_TEXT_ID
        return vocabulary.decode([FIRST_TEXT_ID + (7 * row + i * i) % count for i in range(2 + row % 9)])

    return [(text(sides[0], row), text(sides[1], row + 3)) for row in range(SENTENCES)]


def _encoded(model: Any, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
    """The first pairs as pieces, cut where the model does not read further."""
    limit = model.config.max_seq_len - 1
    masked = [tokenizer.mask_pair(*pair) for pair in pairs[:SENTENCES]]
    return [(tokenizer.src.encode(src)[:limit], tokenizer.tgt.encode(tgt)[:limit]) for src, tgt in masked]


def _device(model: Any) -> torch.device:
    return next(model.parameters()).device


def _difference(a: Tensor, b: Tensor) -> float:
    """The largest difference, as a share of the largest number; infinite where a number is none."""
    if not a.numel():
        return 0.0
    value = ((a - b).abs().max() / a.abs().max().clamp(min=1e-30)).item()
    return value if math.isfinite(value) else math.inf


def _within(name: str, words: str, value: float) -> Check:
    return Check(name, f"{words} {value:.1e} (at most {TOLERANCE:.0e})", value, value <= TOLERANCE)


def _round_trip(tokenizer: Tokenizer, texts: Sequence[str]) -> Check:
    """Text to pieces and back gives the cleaned text, wherever every character has a piece or is spelt in bytes."""
    lost = count = 0
    for vocabulary in {id(one): one for one in (tokenizer.src, tokenizer.tgt)}.values():
        for text in (*texts, *_STRANGE):
            ids = vocabulary.encode(text)
            if UNK_ID not in ids:
                count += 1
                lost += vocabulary.decode(ids) != clean(text)
    return Check("tokenizer", f"{count - lost:,} of {count:,} texts come back from their pieces", lost, lost == 0)


def _causality(model: Transformer | DecoderOnly, batch: Batch) -> Check:
    """Other tokens from the middle on: what was predicted before them must be the same."""
    before = model(batch.src, batch.tgt_in)
    middle = max(batch.tgt_in.size(1) // 2, 1)
    other = batch.tgt_in.clone()
    other[:, middle:] = batch.tgt_in[:, middle:].roll(1, dims=0).flip(1).clamp(min=EOS_ID)
    value = _difference(before[:, :middle], model(batch.src, other)[:, :middle])
    return _within("causality", "later tokens change earlier predictions by", value)


def _padding(model: Transformer | DecoderOnly, rows: list[Row], batch: Batch) -> Check:
    """Each pair alone, and filled up among longer ones."""
    together = model(batch.src, batch.tgt_in)
    value = 0.0
    for number, row in enumerate(rows):
        alone = Batch.of([row], device=_device(model))
        logits = model(alone.src, alone.tgt_in)[0]
        value = max(value, _difference(logits, together[number, : len(logits)]))
    return _within("padding", "padding changes predictions by", value)


def _padding_of_texts(model: EncoderOnly, texts: list[list[int]]) -> Check:
    """Each text alone, and filled up among longer ones."""
    together = model.embed(_sources(model, texts))
    value = max(_difference(model.embed(_sources(model, [t]))[0], together[row]) for row, t in enumerate(texts))
    return _within("padding", "padding changes vectors by", value)


def _sources(model: Any, texts: Sequence[list[int]]) -> Tensor:
    return pad([[*ids, EOS_ID] for ids in texts]).to(_device(model))


def _cached(model: Transformer | DecoderOnly, fast: FastTransformer | FastDecoderOnly, batch: Batch) -> Check:
    """Token after token with the keys and values of the earlier ones kept, and all at once without."""
    plain, state = model(batch.src, batch.tgt_in), fast.encode(batch.src)
    value = 0.0
    for position in range(batch.tgt_in.size(1)):
        step = fast(batch.tgt_in[:, position], position, state)
        real = (batch.tgt_in[:, : position + 1] != PAD_ID).all(dim=1)[:, None] & (step != -math.inf)
        value = max(value, _difference(plain[:, position][real], step[real]))
    return _within("cache", "keys and values that are kept change predictions by", value)


def _search(
    model: Transformer | DecoderOnly, fast: FastTransformer | FastDecoderOnly, tokenizer: Tokenizer, batch: Batch
) -> Check:
    """The log-probabilities that greedy search reports of its outputs, and those that the plain model gives them."""
    size = batch.src.size(0)
    length = min(LONGEST_OUTPUT, model.config.max_seq_len)
    task = Task(max_lengths=[length] * size, bos_id=BOS_ID, eos_id=EOS_ID, device=_device(model))
    found = [hypotheses[0] for hypotheses in Greedy()(fast, fast.encode(batch.src), task)]
    forbidden = tokenizer.tgt.forbidden_ids()
    value = max(
        abs(one.log_prob - _log_prob(model, batch.src[row : row + 1], one, forbidden)) / (len(one.ids) + 1)
        for row, one in enumerate(found)
    )
    return _within(
        "search", "plain model and fast search differ for each piece by", value if value == value else math.inf
    )


def _log_prob(model: Any, src: Tensor, found: Hypothesis, forbidden: list[int]) -> float:
    """Of an output, by the plain model, which never says what is forbidden."""
    src = src[:, (src != PAD_ID).any(dim=0)]
    batch = Batch.of(training_rows([([], found.ids)]), device=src.device)
    logits = model(src, batch.tgt_in)
    logits[..., forbidden] = -math.inf
    return -F.cross_entropy(logits[0], batch.tgt_out[0], reduction="sum").item()


def _softmax_rows(model: Any, run: Callable[[], Tensor]) -> Check:
    """Every row of every head's attention sums to 1."""
    with attention_maps(model) as maps:
        run()
    rows = torch.cat([(weights.sum(dim=-1) - 1).abs().flatten() for calls in maps.values() for weights in calls])
    value = rows.max().item()
    words = f"{rows.numel():,} rows of attention of {sum(map(len, maps.values()))} layers sum to 1 but for"
    return _within("softmax", words, value if math.isfinite(value) else math.inf)


def _permutation(blind: nn.Module, embedding: Embedding, encode: Callable[[Tensor], Tensor], src: Tensor) -> Check:
    """Without positions an encoder does not know the order of its tokens: its vectors come in the order of these.

    The positions of the model, a copy, are taken away.
    """
    embedding.positions = None
    for module in blind.modules():
        if isinstance(module, MultiHeadAttention):
            module.rotary = None
    order = torch.arange(src.size(1) - 1, -1, -1, device=src.device)
    real = (src != PAD_ID)[:, order]
    value = _difference(encode(src)[:, order][real], encode(src[:, order])[real])
    return _within("order", "without positions another order of the source changes its vectors by", value)


_NO_PAIRS = Check("source", "not checked: there are no pairs of texts", None, None)
Texts = Sequence[list[int]]


def _exchanged(ids: list[tuple[list[int], list[int]]]) -> tuple[Texts, Texts, Texts] | None:
    """Sources, targets, and sources that belong to other targets; None where there are no two pairs."""
    whole = [(src, tgt) for src, tgt in ids if src and tgt]
    if len(whole) < 2:
        return None
    sources, targets = zip(*whole, strict=True)
    return sources, targets, [*sources[1:], sources[0]]


def _tells_pairs(model: EncoderOnly, sources: Texts, targets: Texts, others: Texts) -> Check:
    """Sources are more similar to their own targets than to others."""
    src, tgt, other = (model.embed(_sources(model, texts)) for texts in (sources, targets, others))
    own, shuffled = ((vectors * tgt).sum(dim=1).mean().item() for vectors in (src, other))
    words = f"the similarity of translations is {own:.2f}, of other pairs {shuffled:.2f}"
    return Check("source", words, own - shuffled, own - shuffled > SHUFFLED)


def _uses_source(model: Transformer | DecoderOnly, sources: Texts, targets: Texts, others: Texts) -> Check:
    """Targets fit their own sources better than those of other targets."""
    own, shuffled = (
        evaluate_loss(model, [Batch.of(training_rows(zip(texts, targets, strict=True)), device=_device(model))]).loss
        for texts in (sources, others)
    )
    words = f"the loss is {own:.2f}, with sources of other targets {shuffled:.2f}"
    return Check("source", words, shuffled - own, shuffled - own > SHUFFLED)
