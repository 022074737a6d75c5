"""Text to text: tokenize, search, detokenize. The public Python interface of a trained run."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ...data.cleaning import clean
from ...data.errors import DataError
from ...data.glossary import Glossary, missed
from ...data.padding import pad_sources
from ...data.placeholders import SYMBOLS, Masked, differences, has_words, placeholders
from ...data.sentences import refuse_one_text, split_text
from ...data.tokenizer import BOS_ID, EOS_ID, PLACEHOLDER_IDS, UNK_ID, Tokenizer
from ..memory import in_halves
from ..model.decoder_only import DecoderOnly
from ..model.encoder_decoder import Transformer
from ..runs.trained import load_run
from .beam import Beam
from .config import DecodingConfig
from .constrained import ConstrainedBeam
from .defaults import build_search
from .fast import arrange
from .greedy import Greedy
from .phrases import Phrase
from .repeats import LOOP_SIZE, is_loop
from .search import Hypothesis, Search, SearchState, Task
from .spelling import Speller
from .threads import on_device

MAX_BATCH_TOKENS = 12_000
"""Source positions, padding included and times the rows of a search, that are searched together at most."""
_MIN_BATCH_TOKENS = 1_000
"""No fewer are put in a batch to give another core some work, too: in smaller ones Python is what takes time."""


@dataclass(frozen=True)
class Translation:
    """The translation of one text.

    Attributes:
        text: The best output, detokenized; empty for an empty input.
        score: Its length-normalised log-probability, summed over the parts of a text that had to be split.
        log_prob: Its raw log-probability.
        tokens: Its pieces.
        ids: Their numbers; None where a text is blank or had to be split.
        alternatives: All the hypotheses that the search gives, this one included: best first, samples in the order
            drawn.
        lost, added: Placeholders such as `%s` that the source has and the output has not, and the other way round.
        missed: Translations of a glossary's terms that it should have, and has not.
        looped: The first search said the same again and again. This is what a second one found, unless that lost a
            placeholder.
    """

    text: str
    score: float = 0.0
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] | None = None
    alternatives: tuple["Translation", ...] = ()
    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    looped: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def confidence(self) -> float:
        """How sure the model is, from 0 to 1: the geometric mean of the probabilities of the pieces and of the end.

        It says nothing of what the model has never seen: `tfm evaluate` tells how it goes with the quality.
        """
        return math.exp(self.log_prob / (len(self.tokens) + 1))


@dataclass(frozen=True)
class _Part:
    """One piece of one input text: what is searched for at a time.

    Attributes:
        line: Of the texts given, counted from 0.
        index: Of the parts of this text.
        text: The source, with symbols for its placeholders.
        ids: The source.
        prefix: What the output begins with.
        phrases: What the output must contain.
    """

    line: int
    index: int
    text: str
    ids: list[int]
    prefix: list[int]
    phrases: tuple[Phrase, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """What it is told from other parts by, in order."""
        return self.line, self.index


_Found = dict[tuple[int, int], list[Hypothesis]]
"""Hypotheses, best first, by the key of their part."""


class Translator:
    """Translates text with a trained model.

    Args:
        model: In evaluation mode.
        tokenizer: The one it was trained with.
        decoding: Defaults of the search.
        warn: Receives a sentence when a text had to be cut inside a sentence.
    """

    def __init__(
        self,
        model: Transformer | DecoderOnly,
        tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
        *,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.decoding = decoding or DecodingConfig()
        self.warn = warn
        self.device = next(model.parameters()).device
        self.checkpoint: Path | None = None
        """Where the model was loaded from, if it was."""
        self._model = arrange(model, tokenizer.tgt.forbidden_ids())
        self._speller = Speller(tokenizer.tgt)
        self._max_source = model.config.max_seq_len - 1  # eos takes one place

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        checkpoint: str = "best",
        device: str = "auto",
        warn: Callable[[str], None] = lambda text: None,
    ) -> "Translator":
        """Loads a run directory.

        Args:
            run: For example `runs/toy`.
            checkpoint: `best`, `last` or a step.
            device: `auto`, `cpu`, `cuda` or `mps`.
            warn: Receives a sentence when a text had to be cut inside a sentence.

        Raises:
            ModelError: No sound checkpoint, or a tokenizer that is not the model's.
            UsageError: The model is no translator.
        """
        loaded = load_run(run, "translator", checkpoint=checkpoint, device=device, warn=warn)
        assert isinstance(loaded.model, Transformer | DecoderOnly)
        translator = cls(loaded.model, loaded.tokenizer, loaded.description.decoding_config(), warn=warn)
        translator.checkpoint = loaded.checkpoint
        return translator

    def search(
        self,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        no_repeat_ngram_size: int | None = None,
    ) -> Greedy | Beam:
        """The run's own search, with what is given instead of its beam size, length penalty and so on.

        Raises:
            ValueError: A value is out of range, or `n_best` exceeds the beam size given.
        """
        return build_search(self.decoding, beam_size, length_penalty, n_best, no_repeat_ngram_size)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        search: Search | None = None,
        prefixes: Sequence[str] | str | None = None,
        first_line: int = 0,
        glossary: Glossary | None = None,
        repair: bool = True,
    ) -> list[Translation]:
        """Translates texts, in order, one translation for each.

        Texts longer than the model allows are split at sentence ends and their translations joined. Blank texts give
        blank translations. A text of placeholders alone is its own translation.

        Args:
            texts: Any strings.
            beam_size: Hypotheses kept; 1 is greedy search. Short for `search=translator.search(beam_size)`.
            search: `Greedy`, `Sample` or `Beam`. Without it and without a beam size, the run's own search.
            prefixes: What the translations begin with: one beginning for each text, or a string for all of them; an
                empty one leaves a translation free. The last word of a prefix may go on: `Haus` can become `Haustür`.
                Of a text that has to be split, the first part takes the prefix. A blank text stays blank. Nothing
                follows a prefix that is as long as the run's limit for its text.
            first_line: Number of the first text in a longer stream; a sample and a warning depend on its line's number.
            glossary: Terms whose translations are given. Texts that have one are translated by beam search.
            repair: Where an output has not the placeholders of its text, search once more, by a beam search that ends
                no output without them; where it repeats itself (`repeats.is_loop`), by a search that forbids this.
                Samples stay as they are.

        Raises:
            ValueError: Both `beam_size` and `search` are given, the beam size is below 1, or there are not as many
                prefixes as texts.
            DataError: A prefix is longer than the model allows, or has characters that its vocabulary lacks.
            TypeError: One text came instead of several.
        """
        refuse_one_text(texts)
        if search is not None and beam_size is not None:
            raise ValueError("give beam_size or search, not both: a search has its own beam size")
        search = search or self.search(beam_size)
        starts = self._encode_prefixes(prefixes, len(texts))
        masked = [self.tokenizer.mask(clean(text)) for text in texts]
        parts = [
            part for line, one in enumerate(masked) for part in self._split(line, one.text, first_line, starts[line])
        ]
        if glossary is not None:
            parts = [replace(part, phrases=self._terms(part.text, glossary)) for part in parts]
        found = self._search_with_phrases(parts, search, first_line)
        looped: set[int] = set()
        if repair and isinstance(search, Greedy | Beam):
            looped = self._repair(parts, found, search, first_line)
        per_line: list[list[list[Hypothesis]]] = [[] for _ in texts]
        for line, index in sorted(found):
            per_line[line].append(found[line, index])
        terms = [[] if glossary is None else glossary.wanted(one.text) for one in masked]
        rows = enumerate(zip(masked, per_line, terms, strict=True))
        return [
            _checked(one.unmask(one.text), self._join(parts, one), wanted, looped=line in looped)
            for line, (one, parts, wanted) in rows
        ]

    def _repair(self, parts: list[_Part], found: _Found, search: Greedy | Beam, first_line: int) -> set[int]:
        """Searches once more where placeholders are wrong, then where an output repeats itself.

        Args:
            found: The outputs so far; better ones take their place.

        Returns:
            The lines whose outputs repeated themselves.
        """
        wrong = [part for part in parts if not self._is_faithful(part, found)]
        constrained = {part.key: self._with_placeholders(part) for part in wrong}
        found |= self._search_with_phrases(list(constrained.values()), search, first_line)
        parts = [constrained.get(part.key, part) for part in parts]
        looping = [part for part in parts if is_loop(found[part.key][0].ids, part.ids)]
        without = self._search_with_phrases(looping, replace(search, no_repeat_ngram_size=LOOP_SIZE), first_line)
        for part in looping:
            if self._is_faithful(part, without) or not self._is_faithful(part, found):
                found[part.key] = without[part.key]
        return {part.line for part in looping}

    def _search_with_phrases(self, parts: list[_Part], search: Search, first_line: int) -> _Found:
        """The hypotheses of parts; those whose output must contain something are searched under that constraint."""
        found = self._search_all([part for part in parts if not part.phrases], search, first_line)
        return found | self._search_all([part for part in parts if part.phrases], self._constrained(search), first_line)

    def _search_all(self, parts: list[_Part], search: Search, first_line: int) -> _Found:
        """The hypotheses of parts, by line and part, searched in batches of similar length."""
        total = sum(len(part.ids) + 1 for part in parts) * search.rows
        on_cpu = self.device.type == "cpu"
        batches = _length_batches(parts, (_batch_tokens(total) if on_cpu else MAX_BATCH_TOKENS) // search.rows)

        def search_batch(batch: list[_Part], check: Callable[[], None]) -> list[list[Hypothesis]]:
            return in_halves(lambda part: self._search(part, check, search, first_line), batch)

        all_results = on_device(self.device, search_batch, batches)
        return {
            part.key: hypotheses
            for batch, results in zip(batches, all_results, strict=True)
            for part, hypotheses in zip(batch, results, strict=True)
        }

    def _constrained(self, search: Search) -> ConstrainedBeam:
        """A search like another one for outputs that must contain something."""
        alike = search
        if not isinstance(alike, Beam):
            once = search.no_repeat_ngram_size if isinstance(search, Greedy) else 0
            alike = Beam(self.decoding.beam_size, search.length_penalty, no_repeat_ngram_size=once)
        symbols = tuple(PLACEHOLDER_IDS) if self.tokenizer.has_placeholders else ()
        return ConstrainedBeam(alike, symbols)

    def _terms(self, text: str, glossary: Glossary) -> tuple[Phrase, ...]:
        """What a text's terms become; nothing where that is longer than the model writes."""
        terms = tuple(filter(None, map(self._speller.term, glossary.wanted(text))))
        return terms if sum(term.longest for term in terms) < self.model.config.max_seq_len // 2 else ()

    def _is_faithful(self, part: _Part, found: _Found) -> bool:
        """Whether the best output of a part has the placeholders of its source, and no other ones."""
        ids = found[part.key][0].ids
        if not self.tokenizer.has_placeholders:
            return not placeholders(part.text) or not differences(part.text, self.tokenizer.tgt.decode(ids))
        return _symbols(ids) == _symbols(part.ids)

    def _with_placeholders(self, part: _Part) -> _Part:
        """A part whose output must contain the placeholders of its source, as symbols or as they are spelt."""
        symbols = [character for character in part.text if character in SYMBOLS]
        values = symbols if self.tokenizer.has_placeholders else placeholders(part.text)
        return replace(part, phrases=(*part.phrases, *self._speller.placeholders(values, part.text)))

    def _encode_prefixes(self, prefixes: Sequence[str] | str | None, count: int) -> list[list[int]]:
        """Target pieces of what each translation begins with."""
        if prefixes is None:
            return [[]] * count
        if isinstance(prefixes, str):
            return [self._encode_prefix(prefixes)] * count
        if len(prefixes) != count:
            raise ValueError(f"there are {count} texts, but {len(prefixes)} prefixes")
        return [self._encode_prefix(prefix) for prefix in prefixes]

    def _encode_prefix(self, prefix: str) -> list[int]:
        ids = self.tokenizer.tgt.encode(prefix)
        name, longest = f"the prefix {_shortened(prefix)!r}", self.model.config.max_seq_len - 1  # eos takes one place
        if len(ids) > longest:
            raise DataError(f"{name} has {len(ids)} pieces, but this model writes at most {longest}; shorten it")
        if UNK_ID in ids:
            raise DataError(f"{name} has a character or a word that is not in the target vocabulary; leave it out")
        return ids

    def _split(self, line: int, text: str, first_line: int, prefix: list[int]) -> list[_Part]:
        if not text or _is_markup(text):
            return []
        ids = self.tokenizer.src.encode(text)
        if len(ids) <= self._max_source:
            return [_Part(line, 0, text, ids, prefix)]
        pieces, cut = split_text(text, lambda part: len(self.tokenizer.src.encode(part)), self._max_source)
        if cut:
            number = first_line + line + 1
            self.warn(f"line {number} has a sentence longer than {self._max_source} pieces; translated in parts")
        encode = self.tokenizer.src.encode
        return [_Part(line, i, piece, encode(piece), [] if i else prefix) for i, piece in enumerate(pieces)]

    @torch.inference_mode()
    def _search(
        self, batch: Sequence[_Part], check: Callable[[], None], search: Search, first_line: int
    ) -> list[list[Hypothesis]]:
        """Runs one search over parts of similar length; for each part its hypotheses, best first."""
        src = torch.from_numpy(pad_sources([part.ids for part in batch])).to(self.device)
        task = Task(
            max_lengths=[self._max_length(part) for part in batch],
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            prefixes=[part.prefix for part in batch],
            phrases=[part.phrases for part in batch],
            keys=[f"{first_line + part.line}.{part.index}" for part in batch],
            device=self.device,
        )

        def step(last: Tensor, position: int, state: SearchState) -> Tensor:
            check()
            return self._model(last, position, state)

        return search(step, self._model.encode(src), task)

    def _max_length(self, part: _Part) -> int:
        """Most pieces of its output, eos included: a prefix, phrases and eos always have room."""
        longest = self.model.config.max_seq_len
        limit = self.decoding.max_decode_len(len(part.ids), longest)
        return max(min(limit + sum(phrase.longest for phrase in part.phrases), longest), len(part.prefix) + 1)

    def _join(self, parts: list[list[Hypothesis]], masked: Masked) -> Translation:
        """Joins the parts of one text, rank by rank; a part with fewer hypotheses repeats its last."""
        if not parts:  # blank, or nothing to translate
            text = masked.unmask(masked.text) if _is_markup(masked.text) else ""
            return Translation(text, alternatives=(Translation(text),))
        count = max(len(hypotheses) for hypotheses in parts)
        ranked = [[hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in parts] for rank in range(count)]
        alternatives = tuple(self._detokenized(hypotheses, masked) for hypotheses in ranked)
        best = alternatives[0]
        return replace(best, alternatives=alternatives)

    def _detokenized(self, parts: list[Hypothesis], masked: Masked) -> Translation:
        vocabulary = self.tokenizer.tgt
        texts = [clean(vocabulary.decode(part.ids)) for part in parts]
        return Translation(
            text=masked.unmask(" ".join(text for text in texts if text)),
            score=sum(part.score for part in parts),
            log_prob=sum(part.log_prob for part in parts),
            tokens=tuple(masked.unmask(vocabulary.piece(token)) for part in parts for token in part.ids),
            ids=tuple(parts[0].ids) if len(parts) == 1 else None,
        )


def _is_markup(text: str) -> bool:
    """Whether a text, masked or not, has placeholders and no words."""
    return not has_words(text) and (bool(placeholders(text)) or any(symbol in text for symbol in SYMBOLS))


def _symbols(ids: list[int]) -> Counter[int]:
    """How often each symbol of a placeholder is among ids."""
    return Counter(token for token in ids if token in PLACEHOLDER_IDS)


def _checked(text: str, translation: Translation, terms: list[str], *, looped: bool) -> Translation:
    """A translation with what is wrong with its placeholders and terms."""
    different, absent = differences(text, translation.text), missed(terms, translation.text)
    return replace(translation, lost=different.lost, added=different.added, missed=absent, looped=looped)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:58] + ".."


def _batch_tokens(total: int) -> int:
    """How large batches may be so that all cores end at about the same time: two or more batches for each."""
    each = -(-total // (2 * torch.get_num_threads()))
    return min(max(each, _MIN_BATCH_TOKENS), MAX_BATCH_TOKENS)


def _length_batches(parts: list[_Part], max_tokens: int) -> list[list[_Part]]:
    """Groups parts of similar length, longest first, so that the largest batch meets the memory limit at once."""
    batches: list[list[_Part]] = []
    for part in sorted(parts, key=lambda part: -len(part.ids)):
        if batches and (len(batches[-1]) + 1) * (len(batches[-1][0].ids) + 1) <= max_tokens:
            batches[-1].append(part)
        else:
            batches.append([part])
    return batches
