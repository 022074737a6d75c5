"""Everything that is shown of one forward pass: of one model, on one sentence."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...data.cleaning import clean
from ...data.placeholders import Masked
from ...data.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer, Vocabulary
from ...seq2seq.decoding.beam import Beam, build_search
from ...seq2seq.decoding.fast import arrange, begin
from ...seq2seq.decoding.greedy import Greedy
from ...seq2seq.decoding.sampling import Sample
from ...seq2seq.decoding.search import Hypothesis, Search, Task
from ...seq2seq.model.attention import attention_maps
from ...seq2seq.model.decoder_only import DecoderOnly
from ...seq2seq.model.encoder_decoder import Transformer
from ...seq2seq.model.encoder_only import EncoderOnly
from ...system.errors import DataError, UsageError
from ..runs.checkpoint import checkpoint_step
from ..runs.directory import RunDirectory
from ..runs.load import TrainedRun
from ..runs.weights import load_model
from .probes import WithoutHead, early_logits, without_each_head
from .searches import Extension, Predict, watch
from .stations import Sizes, Station, stations
from .trace import Arrays, encoder_output, trace

CANDIDATES = 20
"""So many pieces are named at each step."""
EARLY_CANDIDATES = 3
"""And of what each layer would have said."""
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
class Step:
    """What may come at one step of the output.

    Attributes:
        candidates: The likeliest pieces, and after them the one that was written, if it is not among them.
        logits: Theirs.
        log_normalisers: For each of `TEMPERATURES` T, the logarithm of the sum of exp(logit / T) over the vocabulary,
            without the pieces that no text may contain.
        probability: Of the piece that was written.
        early: For each layer its likeliest pieces, with their probabilities.
    """

    candidates: list[Piece]
    logits: list[float]
    log_normalisers: list[float]
    probability: float
    early: list[list[tuple[str, float]]]


@dataclass(frozen=True)
class Output:
    """A text that a search has found.

    Attributes:
        text: The text.
        pieces: Its pieces, and `</s>`.
        probabilities: Of each of them, given those before.
        ranks: Of each among all that might have come; greedy search always takes the first, 1, where it is free.
        log_prob, score: Of the whole, and normalised for length.
    """

    text: str
    pieces: list[str]
    probabilities: list[float]
    ranks: list[int]
    log_prob: float
    score: float


@dataclass(frozen=True)
class Snapshot:
    """The same sentence with an earlier checkpoint: its attention is in arrays `checkpoints.STEP.MODULE`."""

    step: int
    text: str
    probabilities: list[float]
    modules: list[str]


@dataclass
class Explanation:
    """One forward pass, and what belongs to it. Built up by `explain`.

    Attributes:
        run, checkpoint: Where the model is from.
        text: The sentence.
        sizes: Of model and sentence.
        axes: The pieces of `src`, `tgt` (what the decoder reads) or `seq`.
        arrays: All results by name, see `trace`.
        stations: The walk.
        written: The pieces that the output has, step by step, `</s>` included.
        output: What the run's own search has found, and `search` in words.
        steps: What could come at each step.
        greedy, samples: What other searches found.
        beam: All that beam search looked at, and its hypotheses.
        heads_off: What the model does without each head.
        snapshots: Earlier checkpoints.
    """

    run: str
    checkpoint: str
    text: str
    sizes: Sizes
    axes: dict[str, list[Piece]]
    arrays: Arrays
    stations: list[Station] = field(default_factory=list)
    written: list[Piece] = field(default_factory=list)
    output: Output | None = None
    search: str = ""
    steps: list[Step] = field(default_factory=list)
    greedy: Output | None = None
    samples: list[Output] = field(default_factory=list)
    beam: dict[str, Any] = field(default_factory=dict)
    heads_off: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    prefix: int = 0
    """Steps whose piece was given: the beginning of a language model's text."""
    at_limit: bool = False
    """Whether the output was ended by the limit of its length, and not by the model."""


@torch.inference_mode()
def explain(
    run: RunDirectory,
    loaded: TrainedRun,
    text: str,
    *,
    with_checkpoints: bool = False,
    on_done: Callable[[str], None] = lambda what: None,
) -> Explanation:
    """Runs a model on a sentence, and looks on.

    Args:
        run: Its directory.
        loaded: The run, read.
        text: For a translator or a sentence encoder a sentence; for a language model a beginning.
        with_checkpoints: Look at the run's other checkpoints, too.
        on_done: Told what comes next.

    Raises:
        DataError: The text is blank, or longer than the model reads.
        UsageError: A sentence encoder has no checkpoints to compare.
    """
    text_only = loaded.description.purpose == "language model"
    reading = Reading(loaded.tokenizer, text, loaded.model.config.max_seq_len, text_only=text_only)
    if isinstance(loaded.model, EncoderOnly):
        if with_checkpoints:
            raise UsageError(f"{run} is a sentence encoder, which writes nothing to compare; leave --checkpoints out")
        return _explain_encoder(run, loaded, loaded.model, reading)
    subject = Subject(loaded.model, reading)
    search = build_search(loaded.description.decoding_config())
    task = subject.task(loaded.description.decoding_config().max_decode_len)
    on_done("searching")
    hypotheses, _ = watch(search, subject.predict, task)
    best = hypotheses[0]
    tgt_in = subject.target(best.ids)
    arrays = trace(subject.model, lambda: subject.model(subject.src, tgt_in))
    axes = subject.axes(best.ids)
    config = subject.model.config
    sizes = Sizes(
        config,
        {name: len(pieces) for name, pieces in axes.items()},
        subject.model.output_layer.out_features,
        with_checkpoints,
        text_only,
    )
    found = Explanation(str(run), loaded.checkpoint.name, reading.text, sizes, axes, arrays)
    found.stations, found.prefix = stations(sizes), len(subject.prefix)
    found.at_limit = len(best.ids) + 1 == task.first_limit
    found.written = [reading.tgt_piece(token) for token in [*best.ids, EOS_ID]]
    found.output, found.search = subject.output(best), _in_words(search)
    found.steps = [*_steps(subject, arrays, best.ids)]
    found.greedy = subject.output(watch(Greedy(), subject.predict, task)[0][0])
    found.samples = [subject.output(one) for one in watch(Sample(samples=SAMPLES), subject.predict, task)[0]]
    found.beam = _beam(search, subject, task)
    on_done("switching heads off")
    without = without_each_head(
        subject.model, lambda: subject.log_probs(best.ids), lambda: subject.fast_search(Greedy(), task)[0].ids
    )
    found.heads_off = [_without(one, reading) for one in without]
    if with_checkpoints:
        for path in run.sound_checkpoints()[0]:
            on_done(f"looking at {path.name}")
            found.snapshots.append(_snapshot(path, loaded, subject, best.ids, task, arrays))
    return found


class Reading:
    """A text as a model reads it: cleaned, with symbols for its placeholders, in pieces.

    Args:
        tokenizer: Of the run.
        text: As given.
        max_seq_len: Of the model.
        text_only: It is the beginning of a text, which is the target.

    Raises:
        DataError: The text is blank, or too long.
    """

    def __init__(self, tokenizer: Tokenizer, text: str, max_seq_len: int, *, text_only: bool) -> None:
        self.tokenizer, self.text, self.text_only = tokenizer, clean(text), text_only
        self._masked: Masked = Masked(self.text, {}) if text_only else tokenizer.mask(self.text)
        if not self._masked.text:
            raise DataError("there is nothing to explain: the text is blank; give a sentence")
        self.ids = (tokenizer.tgt if text_only else tokenizer.src).encode(self._masked.text)
        if len(self.ids) >= max_seq_len:
            raise DataError(
                f"the text has {len(self.ids)} pieces, but this model reads at most {max_seq_len - 1}; give a shorter"
                " sentence"
            )
        if text_only and UNK_ID in self.ids:
            raise DataError("the text has a character or a word that is not in the vocabulary; leave it out")

    def src_piece(self, token: int) -> Piece:
        """Of the source's vocabulary."""
        return self._piece(self.tokenizer.src, token)

    def tgt_piece(self, token: int) -> Piece:
        """Of the target's vocabulary."""
        return self._piece(self.tokenizer.tgt, token)

    def _piece(self, vocabulary: Vocabulary, token: int) -> Piece:
        return Piece(token, self._masked.unmask(vocabulary.piece(token)))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of an output."""
        return self._masked.unmask(clean(self.tokenizer.tgt.decode(ids)))


class Subject:
    """A model that writes, and the text that it is given.

    Args:
        model: In evaluation mode.
        reading: The text.
    """

    def __init__(self, model: Transformer | DecoderOnly, reading: Reading) -> None:
        self.model, self.reading = model, reading
        self.device = next(model.parameters()).device
        self.prefix = reading.ids if reading.text_only else []
        source = torch.zeros(1, 0, dtype=torch.long) if reading.text_only else torch.tensor([[*reading.ids, EOS_ID]])
        self.src = source.to(self.device)  # (1, S)
        self.forbidden = reading.tokenizer.tgt.forbidden_ids()

    def target(self, ids: Sequence[int]) -> Tensor:
        """What the decoder reads to write an output, (1, T): bos, then the output."""
        return torch.tensor([[BOS_ID, *ids]], device=self.device)

    def task(self, max_decode_len: Callable[[int, int], int]) -> Task:
        """What is searched for: a translation, or a continuation.

        Args:
            max_decode_len: The longest output, from the length of the source and the longest that the model writes.
        """
        longest = self.model.config.max_seq_len
        if self.reading.text_only:
            limit = min(len(self.prefix) + CONTINUATION, longest)
        else:
            limit = max_decode_len(len(self.reading.ids), longest)
        return Task([limit], BOS_ID, EOS_ID, prefixes=[self.prefix], keys=["0.0"], device=self.device)

    @property
    def predict(self) -> Predict:
        """The model as a search sees it, computing everything anew at each step; pieces that no text has are out."""
        model, src = self.model, self.src
        memory, mask = (model.encode(src), model.src_mask(src)) if isinstance(model, Transformer) else (None, None)

        def predict(ids: Tensor) -> Tensor:
            rows = ids.size(0)
            if isinstance(model, Transformer):
                assert memory is not None and mask is not None
                hidden = model.decode(ids, memory.expand(rows, -1, -1), mask)
            else:
                hidden = model.hidden_states(src.expand(rows, -1), ids)
            return self.allowed(model.output_layer(hidden[:, -1]))

        return predict

    def allowed(self, logits: Tensor) -> Tensor:
        """Logits (.., V) with -inf for the pieces that no text has, such as padding."""
        return logits.index_fill(-1, torch.tensor(self.forbidden, device=logits.device), float("-inf"))

    def log_probs(self, ids: Sequence[int]) -> Tensor:
        """Of the pieces of an output and of its end, (T,)."""
        logits, written = self._forced(ids)
        return logits.log_softmax(dim=-1).gather(1, written)[:, 0]

    def _forced(self, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The logits (T, V) of an output that is given, and its tokens, the end included, (T, 1)."""
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

    def fast_search(self, search: Search, task: Task) -> list[Hypothesis]:
        """The same search with the model arranged for decoding."""
        fast = arrange(self.model, self.forbidden)
        return search(fast, begin(fast, self.src), task)[0]

    def axes(self, ids: Sequence[int]) -> dict[str, list[Piece]]:
        """The pieces whose positions arrays have."""
        src = [self.reading.src_piece(token) for token in self.src[0].tolist()]
        tgt = [self.reading.tgt_piece(token) for token in (BOS_ID, *ids)]
        return {"src": src, "tgt": tgt} if isinstance(self.model, Transformer) else {"seq": [*src, *tgt], "tgt": tgt}


def _explain_encoder(run: RunDirectory, loaded: TrainedRun, model: EncoderOnly, reading: Reading) -> Explanation:
    src = torch.tensor([[*reading.ids, EOS_ID]]).to(next(model.parameters()).device)
    axes = {"src": [reading.src_piece(token) for token in src[0].tolist()]}
    sizes = Sizes(model.config, {"src": len(axes["src"])}, model.output_layer.out_features)
    vector: list[Tensor] = []

    def embed() -> Tensor:
        vector.append(model.embed(src))
        return vector[0]

    arrays = trace(model, embed)
    hidden = encoder_output(arrays, model.config.num_encoder_layers)
    arrays |= {"sentence.mean": hidden.mean(dim=0, keepdim=True), "sentence.vector": vector[0].float().cpu()}
    found = Explanation(str(run), loaded.checkpoint.name, reading.text, sizes, axes, arrays)
    found.stations = stations(sizes)
    return found


def _in_words(search: Greedy | Beam) -> str:
    if isinstance(search, Greedy):
        return "greedy search"
    return f"beam search with {search.size} hypotheses and length penalty {search.length_penalty}"


def _steps(subject: Subject, arrays: Arrays, ids: Sequence[int]) -> Iterator[Step]:
    """What could come at each step of an output."""
    model, piece = subject.model, subject.reading.tgt_piece
    logits = subject.allowed(arrays["output_layer"])  # (T, V)
    early = [
        subject.allowed(early_logits(hidden, model.decoder.norm, model.output_layer)).softmax(dim=-1)
        for hidden in _layer_outputs(subject, arrays, len(logits))
    ]
    for position, token in enumerate([*ids, EOS_ID]):
        row = logits[position]
        best = row.topk(min(CANDIDATES, int(row.isfinite().sum()))).indices.tolist()
        named = [*best, *(() if token in best else (token,))]
        yield Step(
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


def _layer_outputs(subject: Subject, arrays: Arrays, length: int) -> Iterator[Tensor]:
    """Each decoder layer's output at the target's positions, (T, D)."""
    for layer in range(subject.model.config.num_decoder_layers):
        yield arrays[f"decoder.layers.{layer}.feed_forward_residual"][-length:].to(subject.device)


def _beam(search: Greedy | Beam, subject: Subject, task: Task) -> dict[str, Any]:
    """All that beam search looks at; where the run searches greedily, a small beam is shown."""
    beam = search if isinstance(search, Beam) else Beam(SHOWN_BEAM, search.length_penalty)
    beam = Beam(beam.size, beam.length_penalty, beam.size, beam.no_repeat_ngram_size)
    hypotheses, extensions = watch(beam, subject.predict, task)
    return {
        "size": beam.size,
        "length_penalty": beam.length_penalty,
        "hypotheses": [asdict(subject.output(one)) for one in hypotheses],
        "extensions": [_extension(one, subject.reading) for one in extensions],
    }


def _extension(one: Extension, reading: Reading) -> dict[str, Any]:
    return asdict(one) | {"piece": reading.tgt_piece(one.token).text}


def _without(one: WithoutHead, reading: Reading) -> dict[str, Any]:
    return {
        "module": one.module,
        "head": one.head,
        "log_prob": sum(one.log_probs),
        "log_probs": one.log_probs,
        "text": reading.decode(one.output),
    }


def _snapshot(
    path: Path, loaded: TrainedRun, subject: Subject, ids: Sequence[int], task: Task, arrays: Arrays
) -> Snapshot:
    """Looks at another checkpoint with the output of the best one, whose attention maps it adds to the arrays."""
    model, _ = load_model(path, device=subject.device)
    assert isinstance(model, Transformer | DecoderOnly)
    step, other = checkpoint_step(path), Subject(model, subject.reading)
    with attention_maps(model) as maps:
        log_probs = other.log_probs(ids)
    shown = [name for name in maps if name.endswith("cross_attn") or isinstance(model, DecoderOnly)]
    for name in shown:
        arrays[f"checkpoints.{step}.{name}"] = maps[name][0][0].float().cpu()
    text = subject.reading.decode(other.fast_search(Greedy(), task)[0].ids)
    return Snapshot(step, text, log_probs.exp().tolist(), shown)
