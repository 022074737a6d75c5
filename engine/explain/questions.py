"""Questions at some stations of the walk, answered from the numbers of this forward pass."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from .explanation import TEMPERATURES, Explanation, Piece
from .trace import encoder_output


@dataclass(frozen=True)
class Question:
    """A question at a station, with the answer found in the numbers of this forward pass."""

    station: str
    question: str
    answer: str
    show: dict[str, int] = field(default_factory=dict)
    """Where to look: `layer`, `head`, `token`, `step`, counted from 0."""


def questions(found: Explanation) -> list[Question]:
    """The questions that fit a model, in the order of the walk."""
    walk = found.sizes.walk
    layer = f"{walk.stack}.layers.{{layer}}"
    pieces = found.axes[walk.axis]
    asked = [
        _pieces(pieces),
        *_positions(found, walk.embedding),
        _products(found, layer),
        _softmax(found, layer, pieces),
        _residual(found, layer),
        _feed_forward(found, layer),
    ]
    if found.output is None:
        return [*asked, _sentence(found)]
    asked.append(_mask(found))
    if walk.maps.across:
        weights = f"{walk.maps.module}.weights"
        asked += [_cross_attention(found, weights), _grid(found, weights)]
    return [*asked, _unsure(found), _early(found), _choice(found), _head(found)]


_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def _quoted(text: str) -> str:
    return f"“{text.replace('▁', ' ').strip() or text}”"


def _pieces(pieces: list[Piece]) -> Question:
    texts = [piece.text for piece in pieces]
    spelt = [text for text in texts if _BYTE.fullmatch(text)]
    cut = [(a, b) for a, b in pairwise(texts) if not a.startswith("<") and a != "▁" and not b.startswith(("<", "▁"))]
    if spelt:
        answer = f"No: what the vocabulary does not have is spelt in bytes, such as {spelt[0]}."
    elif cut:
        first, second = cut[0]
        answer = f"No: {_quoted(first)} goes on with {_quoted(second)}. Where a word begins, its piece begins with ▁."
    else:
        answer = "Yes, in this sentence. A rare word would be cut. Where a word begins, its piece begins with ▁."
    return Question("pieces", "Is each word one piece?", answer)


def _positions(found: Explanation, embedding: str) -> Iterator[Question]:
    positions = found.arrays.get(f"{embedding}.positions")
    if positions is None or len(positions) < 2:
        return
    difference = (positions[1] - positions[0]).abs()
    column = int(difference.argmax())
    turning = " The columns on the left turn quickly, those on the right slowly."
    yield Question(
        f"{embedding}-positions",
        "Which columns tell the first position from the second one?",
        f"Column {column + 1} differs most, by {difference[column]:.2f}. The last column hardly differs."
        + (turning if found.sizes.config.positions == "sinusoidal" else ""),
        {"token": 1},
    )


def _products(found: Explanation, layer: str) -> Question:
    products, scores = (found.of_layers(f"{layer}.self_attn.{part}")[0] for part in ("products", "scores"))
    return Question(
        f"{layer}.self_attn-scores",
        "What does the division change?",
        f"In layer 1, the standard deviation of the products is {products.std():.2f} before the division, and"
        f" {scores.std():.2f} after it.",
        {"layer": 0},
    )


def _heads(maps: list[Tensor]) -> Iterator[tuple[int, int, Tensor]]:
    """Layer, head and weights (T, S) of all maps (H, T, S)."""
    for layer, weights in enumerate(maps):
        for head, one in enumerate(weights):
            yield layer, head, one


def _softmax(found: Explanation, layer: str, pieces: list[Piece]) -> Question:
    maps = found.of_layers(f"{layer}.self_attn.weights")
    entropies = (
        (-(weights * weights.clamp(min=1e-30).log()).sum(dim=-1).mean().item(), layer, head)
        for layer, head, weights in _heads(maps)
    )
    _, best, head = min(entropies)
    weights = maps[best][head]  # (T, T)
    # A first position that may only look at itself is no merit of the head.
    row = int(weights[1:].amax(dim=-1).argmax()) + 1 if len(weights) > 1 else 0
    column = int(weights[row].argmax())
    return Question(
        f"{layer}.self_attn-weights",
        "Which head knows best where to look?",
        f"Head {head + 1} of layer {best + 1}: from {_quoted(pieces[row].text)} it looks at"
        f" {_quoted(pieces[column].text)} with a share of {weights[row, column]:.2f}.",
        {"layer": best, "head": head, "token": row},
    )


def _residual(found: Explanation, layer: str) -> Question:
    added, before = (found.of_layers(f"{layer}.self_attn{part}") for part in ("", "_residual.in"))
    lengths = [(a.norm(dim=-1).mean() / x.norm(dim=-1).mean()).item() for a, x in zip(added, before, strict=True)]
    after = f", in layer {len(lengths)} {lengths[-1]:.2f} times" if len(lengths) > 1 else ""
    return Question(
        f"{layer}.self_attn_residual-residual",
        "Does attention replace a vector, or change it a little?",
        f"On average, what attention adds in layer 1 is {lengths[0]:.2f} times as long as the vector it is added to"
        f"{after}.",
        {"layer": 0},
    )


def _feed_forward(found: Explanation, layer: str) -> Question:
    hidden = found.of_layers(f"{layer}.feed_forward.hidden")[0]
    relu = found.sizes.config.activation == "relu"
    share = ((hidden > 0) if relu else (hidden.abs() > 0.1)).float().mean().item()
    above = "above 0. The others are exactly 0" if relu else "farther than 0.1 from 0"
    return Question(
        f"{layer}.feed_forward-ff",
        "How many of the hidden numbers are at work?",
        f"In layer 1, at each position {share:.0%} of them on average are {above}.",
        {"layer": 0},
    )


def _mask(found: Explanation) -> Question:
    weights = found.arrays["decoder.layers.0.self_attn.weights"]
    return Question(
        "decoder.layers.{layer}.self_attn-mask",
        "At what can the first position look?",
        f"At itself alone: its share is {weights[0, 0, 0]:.2f}, and {int((weights[0] == 0).sum())} of"
        f" {weights[0].numel()} shares in this map are exactly 0.",
        {"layer": 0, "head": 0, "step": 0} | ({"token": 0} if "seq" in found.axes else {}),
    )


def _cross_attention(found: Explanation, name: str) -> Question:
    step = max(range(len(found.written) - 1), key=lambda t: len(found.written[t].text), default=0)
    share, layer, head, column = max(
        (weights[step].max().item(), layer, head, int(weights[step].argmax()))
        for layer, head, weights in _heads(found.of_layers(name))
    )
    return Question(
        "decoder.layers.{layer}.cross_attn-weights",
        f"Where does the model look when it writes {_quoted(found.written[step].text)}?",
        f"Head {head + 1} of layer {layer + 1} looks most sharply: at {_quoted(found.axes['src'][column].text)}, with a"
        f" share of {share:.2f}.",
        {"layer": layer, "head": head, "step": step, "token": column},
    )


def _straightness(weights: Tensor) -> float:
    """The share of a map (T, S) that lies near the diagonal."""
    t, s = weights.shape
    rows, columns = torch.arange(t)[:, None] / max(t - 1, 1), torch.arange(s)[None, :] / max(s - 1, 1)
    return ((rows - columns).abs() <= 1.5 / max(s, t)).float().mul(weights).sum().item() / t


def _grid(found: Explanation, name: str) -> Question:
    maps = found.of_layers(name)
    share, layer, head = max((_straightness(weights), layer, head) for layer, head, weights in _heads(maps))
    return Question(
        "all-heads",
        "Which head follows the order of the words?",
        f"Head {head + 1} of layer {layer + 1} is nearest to a diagonal: {share:.0%} of its shares lie on it or"
        " beside it.",
        {"layer": layer, "head": head},
    )


def _least_sure(found: Explanation) -> int:
    """The step at which the piece written was least probable, among those that the model was free to write."""
    free = range(found.prefix, len(found.steps) - found.at_limit) or range(len(found.steps))
    return min(free, key=lambda t: found.steps[t].probability)


def _unsure(found: Explanation) -> Question:
    t = _least_sure(found)
    step, written = found.steps[t], found.written[t].text
    others = [(logit, c.text) for c, logit in zip(step.candidates, step.logits, strict=True) if c.text != written]
    logit, other = max(others)
    probability = math.exp(logit - step.log_normalisers[TEMPERATURES.index(1.0)])
    return Question(
        "probabilities",
        "At which step is the model least sure?",
        f"At step {t + 1}: {_quoted(written)} has a probability of {step.probability:.3f}. The next one is"
        f" {_quoted(other)}, with {probability:.3f}.",
        {"step": t},
    )


def _early(found: Explanation) -> Question:
    t = _least_sure(found)
    written, layers = found.written[t].text, found.steps[t].early
    first = len(layers)
    while first and layers[first - 1][0][0] == written:
        first -= 1
    late = "is not first after the last layer. The search took it all the same."
    answer = f"stands first after layer {first + 1} of {len(layers)}." if first < len(layers) else late
    return Question(
        "early",
        "After which layer does it know what to write?",
        f"At step {t + 1}, {_quoted(written)} {answer}",
        {"step": t},
    )


def _choice(found: Explanation) -> Question:
    assert found.output is not None and found.greedy is not None
    greedy, output, extensions = found.greedy, found.output, found.beam["extensions"]
    if not found.search.startswith("beam"):
        best = found.beam["hypotheses"][0]["text"]
        same = best == greedy.text
        answer = "No: beam search finds the same text." if same else f"Yes: a beam finds {_quoted(best)}."
    elif greedy.text == output.text:
        answer = "No: greedy search and the run's own search found the same text."
    else:
        answer = (
            f"Yes: greedy search wrote {_quoted(greedy.text)} (log-probability {greedy.log_prob:.2f}), the run's own"
            f" search {_quoted(output.text)} ({output.log_prob:.2f})."
        )
    cut = sum(one["fate"] == "cut" for one in extensions)
    return Question(
        "choice",
        "Did it matter how the text was searched for?",
        f"{answer} Beam search looked at {len(extensions)} beginnings and cut {cut} of them.",
    )


def _head(found: Explanation) -> Question:
    least = min(found.heads_off, key=lambda one: one.log_prob)
    changed = sum(one.text != (found.greedy.text if found.greedy else "") for one in found.heads_off)
    stack, _, number, attention = least.module.split(".")
    layer, kind = int(number), attention.replace("_attn", "-attention")
    where = f"head {least.head + 1} of {kind} in layer {layer + 1} of the {stack}"
    text = _quoted(least.text) if least.text else "nothing"
    return Question(
        "heads-off",
        "Which head does this sentence need most?",
        f"Without {where} the output's log-probability is {least.log_prob:.2f}, and greedy search writes {text}."
        f" {changed} of {len(found.heads_off)} heads change the text.",
        {"layer": layer, "head": least.head},
    )


def _sentence(found: Explanation) -> Question:
    hidden = encoder_output(found.arrays, found.sizes.config.num_encoder_layers)
    alike = torch.cosine_similarity(hidden, found.arrays["sentence.mean"], dim=-1)
    nearest, farthest = int(alike.argmax()), int(alike.argmin())
    pieces = found.axes["src"]
    return Question(
        "vector",
        "Which piece is most like the whole sentence?",
        f"{_quoted(pieces[nearest].text)}: the cosine of its vector and the average is {alike[nearest]:.2f}; that of"
        f" {_quoted(pieces[farthest].text)} is {alike[farthest]:.2f}.",
        {"token": nearest},
    )
