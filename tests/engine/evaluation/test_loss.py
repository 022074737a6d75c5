"""Loss and perplexity of a set, against the definition applied to one sentence at a time."""

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from tfm.data.batching import training_rows
from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine.evaluation.loss import SetLoss, evaluate_loss, force_both_ways, in_figures
from tfm.engine.translator import Translator
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.training.batch import Batch

Ids = list[tuple[list[int], list[int]]]


@pytest.fixture(scope="module")
def ids(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> Ids:
    encoded = [(tokenizer.src.encode(src), tokenizer.tgt.encode(tgt)) for src, tgt in pairs[:12]]
    return [*encoded, ([5], []), (tokenizer.src.encode("zzz"), tokenizer.tgt.encode("yy xx ww vv"))]


def batches(ids: Ids, size: int) -> list[Batch]:
    return [Batch.of(training_rows(ids[i : i + size])) for i in range(0, len(ids), size)]


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_loss_is_the_mean_over_all_target_tokens_without_padding(model: Transformer, ids: Ids, batch_size: int) -> None:
    losses: list[float] = []
    with torch.no_grad():
        for src, tgt in ids:
            logits = model(torch.tensor([[*src, EOS_ID]]), torch.tensor([[BOS_ID, *tgt]]))[0]
            losses += F.cross_entropy(logits, torch.tensor([*tgt, EOS_ID]), reduction="none").tolist()
    found = evaluate_loss(model, batches(ids, batch_size))
    assert found.num_tokens == len(losses) == sum(len(tgt) + 1 for _, tgt in ids)
    assert found.loss == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert found.ppl == pytest.approx(math.exp(sum(losses) / len(losses)), rel=1e-4)


def test_no_gradient_is_kept(model: Transformer, ids: Ids) -> None:
    evaluate_loss(model, batches(ids, 4))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_hopeless_perplexity_stays_a_number() -> None:
    assert math.isfinite(SetLoss(5000.0, 1).ppl)
    assert in_figures(SetLoss(5000.0, 1).ppl, 2) == "1.0e+304" and in_figures(12.345678, 2) == "12.35"


def test_an_empty_set_has_no_tokens(model: Transformer) -> None:
    assert evaluate_loss(model, []).num_tokens == 0


# --- both ways ---


def log_prob(model: Transformer, tokenizer: Tokenizer, src: str, tgt: str) -> tuple[float, int]:
    """By definition; and the number of pieces."""
    ids = [*tokenizer.tgt.encode(tgt), EOS_ID]
    logits = model(torch.tensor([[*tokenizer.src.encode(src), EOS_ID]]), torch.tensor([[BOS_ID, *ids[:-1]]]))[0]
    return torch.log_softmax(logits, dim=1)[torch.arange(len(ids)), torch.tensor(ids)].sum().item(), len(ids)


@torch.no_grad()
def test_both_ways_are_forced_scores_of_outputs_and_references_and_of_the_sources_given_both(
    model: Transformer, make_model: Callable[[int], Transformer], tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> None:
    back = make_model(20)
    sources, references = map(list, zip(*pairs[:8], strict=True))
    outputs = [*references[1:], ""]
    both = Translator(model, tokenizer), Translator(back, tokenizer)
    found = force_both_ways(*both, [*sources, "a dog " * 300], [*outputs, "a"], [*references, "a"])
    assert found is not None and found.sentences == 8, "what does not fit is left out"

    def mean(way: Transformer, given: list[str], texts: list[str]) -> float:
        sums = [log_prob(way, tokenizer, *pair) for pair in zip(given, texts, strict=True)]
        return -sum(one for one, _ in sums) / sum(count for _, count in sums)

    assert found.outputs == pytest.approx(mean(model, sources, outputs), rel=1e-4)
    assert found.references == pytest.approx(mean(model, sources, references), rel=1e-4)
    assert found.sources_of_outputs == pytest.approx(mean(back, outputs, sources), rel=1e-4)
    assert found.sources_of_references == pytest.approx(mean(back, references, sources), rel=1e-4)
    less = [
        log_prob(back, tokenizer, output, src)[0] < log_prob(back, tokenizer, reference, src)[0]
        for src, output, reference in zip(sources, outputs, references, strict=True)
    ]
    assert found.less_said == sum(less)
    assert force_both_ways(*both, [], [], []) is None
