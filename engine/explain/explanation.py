"""One forward pass of one model on one sentence, with everything that is shown of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...data.cleaning import clean
from ...data.facts import CorpusFacts
from ...data.placeholders import Masked
from ...data.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer
from ...data.usual_form import in_usual_form
from ...seq2seq.decoding.beam import Beam, build_search
from ...seq2seq.decoding.fast import arrange
from ...seq2seq.decoding.greedy import Greedy
from ...seq2seq.decoding.sampling import Sample
from ...seq2seq.decoding.search import Hypothesis, Task
from ...seq2seq.model.attention import attention_maps
from ...seq2seq.model.decoder_only import DecoderOnly
from ...seq2seq.model.encoder_decoder import Transformer
from ...seq2seq.model.encoder_only import EncoderOnly
from ...system.errors import DataError, UsageError
from ..runs.checkpoint import checkpoint_step
from ..runs.directory import RunDirectory
from ..runs.load import TrainedRun
from ..runs.weights import load_model
from ..translation import takes_search
from .probes import WithoutHead, early_logits, without_each_head
from .searches import Predict, watch
from .stations import Station
from .trace import Arrays, encoder_output, trace
from .walk import Sizes, stations

CANDIDATES = 20
"""Pieces that are named at each step."""
EARLY_CANDIDATES = 3
"""Pieces that are named after each layer."""
TEMPERATURES = tuple(round(0.1 * tenths, 1) for tenths in range(1, 21))
SAMPLES = 3
SHOWN_BEAM = 3
"""Size of the beam that is shown where the run itself searches greedily."""
CONTINUATION = 24
"""Pieces that a language model adds."""


@dataclass(frozen=True)
class Piece:
    """One token of an axis."""

    id: int
    text: str


@dataclass(frozen=True)
class WrittenStep:
    """The pieces that were possible at one step of the output."""

    candidates: list[Piece]
    """The likeliest pieces, and after them the one that was written, if it is not among them."""
    logits: list[float]
    log_normalisers: list[float]
    """For each of `TEMPERATURES` T, the logarithm of the sum of exp(logit / T) over the vocabulary, without the pieces
    that no text may contain."""
    probability: float
    """Of the piece that was written."""
    early: list[list[tuple[str, float]]]
    """For each layer its likeliest pieces, with their probabilities."""


@dataclass(frozen=True)
class Output:
    """A text that a search has found: its pieces, `</s>` included, and the probability of each, given those before."""

    text: str
    pieces: list[str]
    probabilities: list[float]
    ranks: list[int]
    """The place of each piece among all that were possible; greedy search takes the first, 1, where it is free."""
    log_prob: float
    score: float
    """`log_prob`, normalised for length."""


@dataclass(frozen=True)
class Snapshot:
    """The same sentence with an earlier checkpoint: its attention is in arrays `checkpoints.STEP.MODULE`."""

    step: int
    text: str
    probabilities: list[float]
    modules: list[str]


@dataclass
class Explanation:
    """One forward pass, and all that is shown beside it. `explain` builds it up."""

    run: str
    checkpoint: str
    text: str
    sizes: Sizes
    axes: dict[str, list[Piece]]  # the pieces of `src`, `tgt` (what the decoder reads) or `seq`
    arrays: Arrays  # all results by name, see `trace`
    stations: list[Station]
    written: list[Piece] = field(default_factory=list)  # the output, step by step, `</s>` included
    output: Output | None = None  # the text that the run's own search has found
    search: str = ""  # the name of that search
    steps: list[WrittenStep] = field(default_factory=list)
    greedy: Output | None = None  # the text that greedy search found
    samples: list[Output] = field(default_factory=list)
    beam: dict[str, Any] = field(default_factory=dict)  # all that beam search looked at, and its hypotheses
    heads_off: list[WithoutHead] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    prefix: int = 0  # steps whose piece was given: the beginning of a language model's text
    at_limit: bool = False  # the output was ended by the limit of its length, and not by the model

    def of_layers(self, name: str) -> list[Tensor]:
        """An array, named with `{layer}`, of each layer of its stack."""
        return [self.arrays[name.format(layer=layer)] for layer in range(self.sizes.layers(name))]


@torch.inference_mode()
def explain(
    run: RunDirectory,
    loaded: TrainedRun,
    text: str,
    *,
    with_checkpoints: bool = False,
    on_done: Callable[[str], None] = lambda what: None,
) -> Explanation:
    """Runs a model on a sentence, and looks on; `on_done` hears what is done next.

    Args:
        text: For a translator or a sentence encoder a sentence; for a language model a beginning.
        with_checkpoints: Look at the run's other checkpoints, too, if it writes something that can be compared.

    Raises:
        DataError: The text is blank, or longer than the model reads.
    """
    begins = loaded.description.purpose == "language model"
    facts = loaded.description.corpus_facts() if loaded.description.purpose == "translator" else None
    reading = Reading(loaded.tokenizer, text, loaded.model.config.max_seq_len, facts, begins=begins)
    if isinstance(loaded.model, EncoderOnly):
        if with_checkpoints:
            raise UsageError(f"{run} is a sentence encoder, which writes nothing to compare; leave --checkpoints out")
        return _explain_encoder(run, loaded, loaded.model, reading)
    subject = Subject(loaded.model, reading)
    search = build_search(loaded.description.decoding_config())
    task = subject.task(loaded.description.decoding_config().max_decode_len)
    on_done("searching")
    best = watch(search, subject.predict, task)[0][0]
    tgt_in = subject.target(best.ids)
    arrays = trace(subject.model, lambda: subject.model(subject.src, tgt_in))
    found = _begun(run, loaded, reading, subject.axes(best.ids), arrays, with_checkpoints)
    found.prefix, found.at_limit = len(subject.prefix), len(best.ids) + 1 == task.first_limit
    found.written = [reading.tgt_piece(token) for token in [*best.ids, EOS_ID]]
    found.output, found.search = subject.output(best), "greedy search"
    if isinstance(search, Beam):
        found.search = f"beam search with {search.size} hypotheses and length penalty {search.length_penalty}"
    found.steps = [*_steps(found, subject, best.ids)]
    found.greedy = subject.output(watch(Greedy(), subject.predict, task)[0][0])
    found.samples = [subject.output(one) for one in watch(Sample(samples=SAMPLES), subject.predict, task)[0]]
    found.beam = _beam(search, subject, task)
    on_done("switching heads off")
    found.heads_off = without_each_head(
        subject.model, lambda: subject.log_probs(best.ids), lambda: subject.greedy_text(task)
    )
    if with_checkpoints:
        for path in run.sound_checkpoints()[0]:
            on_done(f"looking at {path.name}")
            found.snapshots.append(_snapshot(found, path, subject, best.ids, task))
    return found


class Reading:
    """A text as a model reads it: cleaned, with symbols for its placeholders, in pieces; a translator's in the usual
    form of its corpus, of which `facts` tell.

    Where it `begins` a text, it is a part of the target, and there is no source.
    """

    def __init__(
        self, tokenizer: Tokenizer, text: str, max_seq_len: int, facts: CorpusFacts | None, *, begins: bool
    ) -> None:
        self.tokenizer, self.text, self.begins = tokenizer, clean(text), begins
        self._masked: Masked = Masked(self.text, {}) if begins else tokenizer.mask(self.text)
        if not self._masked.text:
            raise DataError("there is nothing to explain: the text is blank; give a sentence")
        if facts and not takes_search(self.text, tokenizer, facts):
            raise DataError("there is nothing to explain: a text without letters is only copied; give a sentence")
        read = in_usual_form(self._masked.text, tokenizer.src, facts).text if facts else self._masked.text
        if not read:
            raise DataError(
                "there is nothing to explain: the vocabulary knows no letter of the text; it is only copied"
            )
        self.ids = (tokenizer.tgt if begins else tokenizer.src).encode(read)
        if len(self.ids) >= max_seq_len:
            raise DataError(
                f"the text has {len(self.ids)} pieces, but this model reads at most {max_seq_len - 1}; give a shorter"
                " sentence"
            )
        if begins and UNK_ID in self.ids:
            raise DataError("the text has a character or a word that is not in the vocabulary; leave it out")

    def src_piece(self, token: int) -> Piece:
        """A token of the source, with its placeholder in the place of a symbol."""
        return Piece(token, self._masked.unmask(self.tokenizer.src.piece(token)))

    def tgt_piece(self, token: int) -> Piece:
        """A token of the target."""
        return Piece(token, self._masked.unmask(self.tokenizer.tgt.piece(token)))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of an output."""
        return self._masked.unmask(clean(self.tokenizer.tgt.decode(ids)))


class Subject:
    """A model that writes, in evaluation mode, and the text that it is given."""

    def __init__(self, model: Transformer | DecoderOnly, reading: Reading) -> None:
        self.model, self.reading = model, reading
        self.device = next(model.parameters()).device
        self.prefix, source = (reading.ids, []) if reading.begins else ([], [*reading.ids, EOS_ID])
        self.src = torch.tensor([source], dtype=torch.long, device=self.device)  # (1, S)
        self.forbidden = reading.tokenizer.tgt.forbidden_ids()

    def target(self, ids: Sequence[int]) -> Tensor:
        """The decoder's input (1, T) for an output: bos, then the output."""
        return torch.tensor([[BOS_ID, *ids]], device=self.device)

    def task(self, max_decode_len: Callable[[int, int], int]) -> Task:
        """The task of a search: a translation, or a continuation. For `max_decode_len` see `DecodingConfig`."""
        longest = self.model.config.max_seq_len
        if self.reading.begins:
            limit = min(len(self.prefix) + CONTINUATION, longest)
        else:
            limit = max_decode_len(len(self.reading.ids), longest)
        return Task([limit], BOS_ID, EOS_ID, prefixes=[self.prefix], keys=["0.0"], device=self.device)

    @property
    def predict(self) -> Predict:
        """The logits of the next tokens, computed anew at each step; pieces that no text has are -inf."""
        model, src = self.model, self.src
        if isinstance(model, Transformer):
            memory, mask = model.encode(src), model.src_mask(src)
            return lambda ids: self._next(model.decode(ids, memory.expand(ids.size(0), -1, -1), mask))
        return lambda ids: self._next(model.hidden_states(src.expand(ids.size(0), -1), ids))

    def _next(self, hidden: Tensor) -> Tensor:
        return self.allowed(self.model.output_layer(hidden[:, -1]))

    def allowed(self, logits: Tensor) -> Tensor:
        """Logits (.., V) with -inf for the pieces that no text has, such as padding."""
        return logits.index_fill(-1, torch.tensor(self.forbidden, device=logits.device), float("-inf"))

    def log_probs(self, ids: Sequence[int]) -> Tensor:
        """Log-probabilities (T,) of the pieces of an output and of its end."""
        logits, written = self._forced(ids)
        return logits.log_softmax(dim=-1).gather(1, written)[:, 0]

    def _forced(self, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The logits (T, V) of a given output, and its tokens with the end, (T, 1)."""
        logits = self.allowed(self.model(self.src, self.target(ids)))[0]
        return logits, torch.tensor([*ids, EOS_ID], device=self.device)[:, None]

    def output(self, found: Hypothesis) -> Output:
        """A hypothesis as text, each piece with its probability and its rank."""
        logits, written = self._forced(found.ids)  # (T, V), (T, 1)
        return Output(
            self.reading.decode(found.ids),
            [self.reading.tgt_piece(token).text for token in written[:, 0].tolist()],
            logits.softmax(dim=-1).gather(1, written)[:, 0].tolist(),
            (1 + (logits > logits.gather(1, written)).sum(dim=1)).tolist(),
            found.log_prob,
            found.score,
        )

    def greedy_text(self, task: Task) -> str:
        """The output of greedy search, by the model arranged for decoding."""
        fast = arrange(self.model, self.forbidden)
        return self.reading.decode(Greedy()(fast, fast.encode(self.src), task)[0][0].ids)

    def axes(self, ids: Sequence[int]) -> dict[str, list[Piece]]:
        """The pieces of each axis."""
        src = [self.reading.src_piece(token) for token in self.src[0].tolist()]
        tgt = [self.reading.tgt_piece(token) for token in (BOS_ID, *ids)]
        return {"src": src, "tgt": tgt} if isinstance(self.model, Transformer) else {"seq": [*src, *tgt], "tgt": tgt}


def _explain_encoder(run: RunDirectory, loaded: TrainedRun, model: EncoderOnly, reading: Reading) -> Explanation:
    src = torch.tensor([[*reading.ids, EOS_ID]]).to(next(model.parameters()).device)
    vector: list[Tensor] = []

    def embed() -> Tensor:
        vector.append(model.embed(src))
        return vector[0]

    arrays = trace(model, embed)
    hidden = encoder_output(arrays, model.config.num_encoder_layers)
    arrays |= {"sentence.mean": hidden.mean(dim=0, keepdim=True), "sentence.vector": vector[0].float().cpu()}
    return _begun(run, loaded, reading, {"src": [reading.src_piece(token) for token in src[0].tolist()]}, arrays)


def _begun(
    run: RunDirectory,
    loaded: TrainedRun,
    reading: Reading,
    axes: dict[str, list[Piece]],
    arrays: Arrays,
    with_checkpoints: bool = False,
) -> Explanation:
    """The walk, and nothing beside it."""
    lengths = {name: len(pieces) for name, pieces in axes.items()}
    vocabulary = loaded.model.output_layer.out_features
    sizes = Sizes(loaded.model.config, lengths, vocabulary, with_checkpoints, reading.begins)
    return Explanation(str(run), loaded.checkpoint.name, reading.text, sizes, axes, arrays, stations(sizes))


def _steps(found: Explanation, subject: Subject, ids: Sequence[int]) -> Iterator[WrittenStep]:
    """The possible pieces at each step of an output."""
    model, piece = subject.model, subject.reading.tgt_piece
    logits = subject.allowed(found.arrays["output_layer"])  # (T, V)
    layers = found.of_layers("decoder.layers.{layer}.feed_forward_residual")
    hidden = [layer[-len(logits) :].to(subject.device) for layer in layers]  # at the target's positions, (T, D)
    early = [
        subject.allowed(early_logits(one, model.decoder.norm, model.output_layer)).softmax(dim=-1) for one in hidden
    ]
    for position, token in enumerate([*ids, EOS_ID]):
        row = logits[position]
        best = row.topk(min(CANDIDATES, int(row.isfinite().sum()))).indices.tolist()
        named = [*best, *(() if token in best else (token,))]
        yield WrittenStep(
            candidates=[piece(one) for one in named],
            logits=row[named].tolist(),
            log_normalisers=[(row.double() / t).logsumexp(dim=0).item() for t in TEMPERATURES],
            probability=row.softmax(dim=0)[token].item(),
            early=[_likeliest(layer[position], piece) for layer in early],
        )


def _likeliest(probabilities: Tensor, piece: Callable[[int], Piece]) -> list[tuple[str, float]]:
    """The first pieces of a distribution (V,)."""
    best = probabilities.topk(min(EARLY_CANDIDATES, probabilities.size(0)))
    return [(piece(token).text, p) for token, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def _beam(search: Greedy | Beam, subject: Subject, task: Task) -> dict[str, Any]:
    """All that beam search looks at; where the run searches greedily, a small beam is shown."""
    beam = search if isinstance(search, Beam) else Beam(SHOWN_BEAM, search.length_penalty)
    beam = Beam(beam.size, beam.length_penalty, beam.size, beam.no_repeat_ngram_size)
    hypotheses, extensions = watch(beam, subject.predict, task)
    return {
        "size": beam.size,
        "length_penalty": beam.length_penalty,
        "hypotheses": [asdict(subject.output(one)) for one in hypotheses],
        "extensions": [asdict(one) | {"piece": subject.reading.tgt_piece(one.token).text} for one in extensions],
    }


def _snapshot(found: Explanation, path: Path, subject: Subject, ids: Sequence[int], task: Task) -> Snapshot:
    """Looks at another checkpoint with the output of the best one, and adds its attention maps to the arrays."""
    model, _ = load_model(path, device=subject.device)
    assert isinstance(model, Transformer | DecoderOnly)
    step, other = checkpoint_step(path), Subject(model, subject.reading)
    with attention_maps(model) as maps:
        log_probs = other.log_probs(ids)
    shown = found.sizes.walk.maps.module
    modules = [shown.format(layer=layer) for layer in range(found.sizes.layers(shown))]
    for name in modules:
        found.arrays[f"checkpoints.{step}.{name}"] = maps[name][0][0].float().cpu()
    return Snapshot(step, other.greedy_text(task), log_probs.exp().tolist(), modules)
