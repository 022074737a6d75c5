"""Text to text: tokenize, search, detokenize. The public Python interface of a trained run.

A text becomes a `_Job`: cleaned, with symbols for its placeholders, cut into parts that the model can read. Its parts
are searched for freely. Those whose output lacks a term of the glossary, lacks a placeholder or repeats itself are
searched for once more, and the second output has to be better. This is the one way to a translation: validation,
evaluation, documents and the comparison with an export take it.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from ..data.cleaning import clean
from ..data.facts import CorpusFacts
from ..data.glossary import Glossary, missed
from ..data.loops import MIN_LETTERS, is_loop
from ..data.numbers import differences_in_numbers
from ..data.placeholders import NO_DIFFERENCES, SYMBOLS, Differences, Masked, differences, has_words
from ..data.sentences import check_texts, join_texts, split_text
from ..data.tokenizer import BOS_ID, EOS_ID, PLACEHOLDER_IDS, UNK_ID, Tokenizer
from ..seq2seq.decoding.beam import Beam, build_search
from ..seq2seq.decoding.config import DecodingConfig
from ..seq2seq.decoding.constrained import ConstrainedBeam
from ..seq2seq.decoding.fast import arrange
from ..seq2seq.decoding.greedy import Greedy
from ..seq2seq.decoding.phrases import Phrase
from ..seq2seq.decoding.search import Hypothesis, Search, SearchState, Task
from ..seq2seq.model.decoder_only import DecoderOnly
from ..seq2seq.model.encoder_decoder import Transformer
from ..seq2seq.model.masks import pad
from ..seq2seq.out_of_memory import in_halves
from ..system.errors import DataError
from .runs.load import load_run
from .spelling import Speller
from .threads import on_device

MAX_BATCH_TOKENS = 12_000
"""Source positions, padding included and times the rows of a search, that are searched together at most."""
_MIN_BATCH_TOKENS = 1_000
"""No fewer are put in a batch to give another core some work, too: in smaller ones Python is what takes time."""
MARGIN = 0.2
"""Nats for each token that a second output may be less likely. Measured on 700 validation sentences of 2,000 pairs of
documentation, beam 5: 0.1 to 0.2 gain 0.2 to 0.5 BLEU over no repair, 0.3 and more cost up to 1."""


@dataclass(frozen=True)
class Translation:
    """The translation of one text.

    Attributes:
        text: The best output, detokenized; empty for an empty input, the input itself where it has no letters.
        score: Its length-normalised log-probability, summed over the parts of a text that had to be split.
        log_prob: Its raw log-probability.
        tokens: Its pieces.
        ids: Their numbers; None where nothing was searched for or the text had to be split.
        alternatives: All the hypotheses that the search gives, this one included: best first, samples in the order
            drawn.
        lost, added, glued: Placeholders such as `%s` that the source has and the output has not; that the output has
            and the source has not; that touch a letter in the output alone.
        numbers: Those that the source has and the output has not, and the other way round. A hint: one may be a word.
        missed: Translations of a glossary's terms that it should have, and has not.
        unknown: What the vocabulary does not know of the source: characters, or words of a word vocabulary.
        unknown_share: The share of the source's characters that this is, from 0 to 1; white space does not count.
        looped: The first search said the same again and again. Where `repaired`, this is what a second one found.
        repaired: This is what a second search found, for a loop or a lost placeholder.
        constrained: The free output lacked a term, so this is what a search found that has to write it.
    """

    text: str
    score: float = 0.0
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] | None = None
    alternatives: tuple["Translation", ...] = ()
    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    glued: tuple[str, ...] = ()
    numbers: Differences = NO_DIFFERENCES
    missed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unknown_share: float = 0.0
    looped: bool = False
    repaired: bool = False
    constrained: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def confidence(self) -> float:
        """How sure the model is, from 0 to 1: the geometric mean of the probabilities of the pieces and of the end,
        times the share of the source that its vocabulary knows.

        It says nothing of words that the model has seldom seen: `tfm evaluate` tells how it goes with the quality.
        """
        return (1 - self.unknown_share) * math.exp(self.log_prob / (len(self.tokens) + 1))


@dataclass
class _Part:
    """A piece of a text: what is searched for at a time.

    Attributes:
        key: Identifies it, for sampling: the number of its line and its own.
        text: The source, with symbols for its placeholders.
        ids: The source.
        prefix: What the output begins with.
        max_length: Most pieces of the output, eos included.
        terms: Translations of a glossary's terms in it.
        phrases: What a search under constraint has to write.
        found: Hypotheses, best first.
    """

    key: str
    text: str
    ids: list[int]
    prefix: list[int]
    max_length: int
    terms: list[str] = field(default_factory=list)
    phrases: tuple[Phrase, ...] = ()
    found: list[Hypothesis] = field(default_factory=list)

    @property
    def best(self) -> Hypothesis:
        """The best hypothesis."""
        return self.found[0]

    @property
    def ends(self) -> bool:
        """Whether the best hypothesis ends before the longest length, at which all have to."""
        return len(self.best.ids) + 1 < self.max_length

    @property
    def log_prob_per_token(self) -> float:
        """Of the best hypothesis, eos included."""
        return self.best.log_prob / (len(self.best.ids) + 1)

    @property
    def is_faithful(self) -> bool:
        """Whether the best hypothesis has the symbols of its source, and no others."""
        return _symbols(self.ids) == _symbols(self.best.ids)


@dataclass
class _Job:
    """A text on its way to its translation.

    Attributes:
        text: As it was given.
        masked: Cleaned, with symbols for its placeholders.
        parts: None where nothing is to be searched for: in a blank text, or in one without letters.
        looped, repaired, constrained: See `Translation`.
    """

    text: str
    masked: Masked
    parts: list[_Part]
    looped: bool = False
    repaired: bool = False
    constrained: bool = False


def say_nothing(text: str) -> None:
    """Hears a sentence and keeps it. Unlike a lambda it can be pickled, and a translator with it."""


class Translator:
    """Translates text with a trained model.

    Args:
        model: In evaluation mode.
        tokenizer: The one it was trained with.
        decoding: Defaults of the search.
        facts: What the training pairs are like.
        warn: Receives a sentence when a text had to be cut inside a sentence.
    """

    def __init__(
        self,
        model: Transformer | DecoderOnly,
        tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
        facts: CorpusFacts | None = None,
        *,
        warn: Callable[[str], None] = say_nothing,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.decoding = decoding or DecodingConfig()
        self.facts = facts or CorpusFacts()
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
        warn: Callable[[str], None] = say_nothing,
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
        facts = loaded.description.corpus_facts()
        translator = cls(loaded.model, loaded.tokenizer, loaded.description.decoding_config(), facts, warn=warn)
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
        repair: bool | None = None,
    ) -> list[Translation]:
        """Translates texts, in order, one translation for each.

        Texts longer than the model allows are split at sentence ends and their translations joined. Blank texts give
        blank translations. A text without letters is its own translation, unless the training pairs show otherwise.

        Args:
            texts: Any strings.
            beam_size: Hypotheses kept; 1 is greedy search. Short for `search=translator.search(beam_size)`.
            search: `Greedy`, `Sample` or `Beam`. Without it and without a beam size, the run's own search.
            prefixes: What the translations begin with: one beginning for each text, or a string for all of them; an
                empty one leaves a translation free. The last word of a prefix may go on: `Haus` can become `Haustür`.
                Of a text that has to be split, the first part takes the prefix. A blank text stays blank. Nothing
                follows a prefix that is as long as the run's limit for its text.
            first_line: Number of the first text in a longer stream; a sample and a warning depend on its line's number.
            glossary: Terms whose translations are given. A text whose free translation lacks one is searched once
                more, by a beam search that ends no output without its terms.
            repair: Search once more where an output lacks placeholders that are carried through or repeats itself.
                True does both, False neither; None does the second only where the training targets do not repeat
                themselves. Samples stay as they are.

        Raises:
            ValueError: Both `beam_size` and `search` are given, the beam size is below 1, or there are not as many
                prefixes as texts.
            DataError: A prefix is longer than the model allows, or has characters that its vocabulary lacks.
            TypeError: One text came instead of several, or one of them is no string.
        """
        check_texts(texts)
        if search is not None and beam_size is not None:
            raise ValueError("give beam_size or search, not both: a search has its own beam size")
        search = search or self.search(beam_size)
        starts = self._encode_prefixes(prefixes, len(texts))
        jobs = [
            self._job(text, first_line + line, start, glossary)
            for line, (text, start) in enumerate(zip(texts, starts, strict=True))
        ]
        self._find([part for job in jobs for part in job.parts], search)
        if glossary is not None:
            self._write_terms(jobs, search)
        if isinstance(search, Greedy | Beam):
            if repair is not False:
                self._restore_placeholders(jobs, search)
            if self.facts.loops_are_faults if repair is None else repair:
                self._break_loops(jobs, search)
        return [self._translation(job) for job in jobs]

    def is_searched(self, text: str) -> bool:
        """Whether a text takes a search: a blank one does not, nor one without letters where the corpus keeps it."""
        kinds = self.tokenizer.placeholders.expected
        return bool(clean(text)) and (has_words(clean(text), kinds) or not self.facts.keeps_letterless)

    def _job(self, text: str, line: int, prefix: list[int], glossary: Glossary | None) -> _Job:
        masked = self.tokenizer.mask(text)
        if not self.is_searched(text):
            return _Job(text, masked, [])
        encode = self.tokenizer.src.encode
        pieces, cut = [masked.text], False
        if len(encode(masked.text)) > self._max_source:
            pieces, cut = split_text(masked.text, lambda part: len(encode(part)), self._max_source)
        if cut:
            self.warn(f"line {line + 1} has a sentence longer than {self._max_source} pieces; translated in parts")
        parts: list[_Part] = []
        for number, piece in enumerate(pieces):
            ids, start = encode(piece), [] if number else prefix
            terms = glossary.wanted(piece) if glossary else []
            parts.append(_Part(f"{line}.{number}", piece, ids, start, self._max_length(ids, start), terms))
        return _Job(text, masked, parts)

    def _max_length(self, source: Sequence[int], prefix: Sequence[int], phrases: Sequence[Phrase] = ()) -> int:
        """Most pieces of an output, eos included: a prefix, phrases and eos always have room."""
        longest = self.model.config.max_seq_len
        limit = self.decoding.max_decode_len(len(source), longest)
        return max(min(limit + sum(phrase.longest for phrase in phrases), longest), len(prefix) + 1)

    # --- once more ---

    def _write_terms(self, jobs: list[_Job], search: Search) -> None:
        """Where a free output lacks a term, takes one that has it."""
        lacking = [(job, part) for job in jobs for part in job.parts if self._missed(part)]
        for _, part in lacking:
            part.phrases = self._terms(part.terms)
        for job, part, second in self._find_again([(job, part) for job, part in lacking if part.phrases], search):
            part.found, job.constrained = second.found, True

    def _restore_placeholders(self, jobs: list[_Job], search: Greedy | Beam) -> None:
        """Where an output has other placeholders than its source, takes one that has the same, if it is good enough."""
        unfaithful = [(job, part) for job in jobs for part in job.parts if not part.is_faithful]
        for _, part in unfaithful:
            symbols = [character for character in part.text if character in SYMBOLS]
            part.phrases += self._speller.placeholders(symbols, part.text)
        for job, part, second in self._find_again(unfaithful, search):
            if self._is_better(second, part):
                part.found, job.repaired = second.found, True

    def _break_loops(self, jobs: list[_Job], search: Greedy | Beam) -> None:
        """Where an output repeats itself, takes one that does not, if it is good enough."""
        looping = [(job, part) for job in jobs for part in job.parts if self._is_loop(part)]
        for job, part, second in self._find_again(looping, replace(search, no_repeat_ngram_size=self._loop_size)):
            job.looped = True
            if self._is_better(second, part) and not self._is_loop(second):
                part.found, job.repaired = second.found, True

    def _find_again(self, parts: Sequence[tuple[_Job, _Part]], search: Search) -> list[tuple[_Job, _Part, _Part]]:
        """Searches for parts once more; beside each is what was found now."""
        again = [replace(one, max_length=self._max_length(one.ids, one.prefix, one.phrases)) for _, one in parts]
        self._find([part for part in again if not part.phrases], search)
        self._find([part for part in again if part.phrases], self._constrained(search))
        return [(job, part, second) for (job, part), second in zip(parts, again, strict=True)]

    def _is_better(self, second: _Part, first: _Part) -> bool:
        """Whether a second output may take the place of the first: it says something and ends, it has what the first
        has of placeholders, terms and numbers, and it is not much less likely."""
        lost = (_symbols(first.ids) & _symbols(first.best.ids)) - _symbols(second.best.ids)
        numbers, before = (self._numbers(first.text, self._output(one)).lost for one in (second, first))
        keeps = not lost and len(self._missed(second)) <= len(self._missed(first)) and len(numbers) <= len(before)
        speaks = second.ends and self._output(second)
        return bool(speaks) and keeps and second.log_prob_per_token >= first.log_prob_per_token - MARGIN

    def _output(self, part: _Part) -> str:
        return clean(self.tokenizer.tgt.decode(part.best.ids))

    def _missed(self, part: _Part) -> tuple[str, ...]:
        return missed(part.terms, self._output(part)) if part.terms else ()

    def _is_loop(self, part: _Part) -> bool:
        return is_loop(self._output(part), part.text, self.facts.limit)

    @cached_property
    def _loop_size(self) -> int:
        """So many pieces in a row have about as many letters as the shortest loop, whatever the vocabulary."""
        return max(3, round(MIN_LETTERS / self.tokenizer.tgt.letters_per_piece))

    # --- searching ---

    def _find(self, parts: list[_Part], search: Search) -> None:
        """Searches for parts in batches of similar length, and keeps what was found in them."""
        total = sum(len(part.ids) + 1 for part in parts) * search.rows
        on_cpu = self.device.type == "cpu"
        batches = _length_batches(parts, (_batch_tokens(total) if on_cpu else MAX_BATCH_TOKENS) // search.rows)

        def search_batch(batch: list[_Part], check: Callable[[], None]) -> list[list[Hypothesis]]:
            return in_halves(lambda part: self._search(part, check, search), batch)

        for batch, results in zip(batches, on_device(self.device, search_batch, batches), strict=True):
            for part, hypotheses in zip(batch, results, strict=True):
                part.found = hypotheses

    @torch.inference_mode()
    def _search(self, batch: Sequence[_Part], check: Callable[[], None], search: Search) -> list[list[Hypothesis]]:
        """Runs one search over parts of similar length; for each part its hypotheses, best first."""
        src = pad([[*part.ids, EOS_ID] for part in batch]).to(self.device)
        task = Task(
            max_lengths=[part.max_length for part in batch],
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            prefixes=[part.prefix for part in batch],
            phrases=[part.phrases for part in batch],
            keys=[part.key for part in batch],
            device=self.device,
        )

        def step(last: Tensor, position: int, state: SearchState) -> Tensor:
            check()
            return self._model(last, position, state)

        return search(step, self._model.encode(src), task)

    def _constrained(self, search: Search) -> ConstrainedBeam:
        """A search like another one for outputs that must contain something."""
        alike = search
        if not isinstance(alike, Beam):
            once = search.no_repeat_ngram_size if isinstance(search, Greedy) else 0
            alike = Beam(self.decoding.beam_size, search.length_penalty, no_repeat_ngram_size=once)
        return ConstrainedBeam(alike, tuple(PLACEHOLDER_IDS) if self.tokenizer.has_placeholders else ())

    def _terms(self, terms: list[str]) -> tuple[Phrase, ...]:
        """What terms become; nothing where that is longer than the model writes."""
        phrases = tuple(filter(None, map(self._speller.term, terms)))
        return phrases if sum(one.longest for one in phrases) < self.model.config.max_seq_len // 2 else ()

    def _encode_prefixes(self, prefixes: Sequence[str] | str | None, count: int) -> list[list[int]]:
        """Target pieces of what each translation begins with."""
        if prefixes is None:
            return [[]] * count
        if isinstance(prefixes, str):
            return [self._encode_prefix(prefixes)] * count
        check_texts(prefixes, "prefixes")
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

    # --- back to text ---

    def _translation(self, job: _Job) -> Translation:
        if not job.parts:
            text = _printable(job.text) if clean(job.text) else ""
            return Translation(text, alternatives=(Translation(text),))
        count = max(len(part.found) for part in job.parts)
        ranked = [[part.found[min(rank, len(part.found) - 1)] for part in job.parts] for rank in range(count)]
        alternatives = tuple(self._detokenized(hypotheses, job.masked) for hypotheses in ranked)
        best, source = alternatives[0], job.masked.unmask(job.masked.text)
        different = differences(source, best.text, self.tokenizer.placeholders.expected)
        unknown, share = self.tokenizer.unknown(job.masked.text)
        return replace(
            best,
            alternatives=alternatives,
            lost=different.lost,
            added=different.added,
            glued=different.glued,
            numbers=self._numbers(source, best.text),
            missed=missed([term for part in job.parts for term in part.terms], best.text),
            unknown=unknown,
            unknown_share=share,
            looped=job.looped,
            repaired=job.repaired,
            constrained=job.constrained,
        )

    def _numbers(self, source: str, text: str) -> Differences:
        if not self.facts.keeps_numbers:
            return NO_DIFFERENCES
        return Differences(*map(tuple, differences_in_numbers(source, text)))

    def _detokenized(self, parts: list[Hypothesis], masked: Masked) -> Translation:
        """The hypotheses of a text's parts, joined."""
        vocabulary = self.tokenizer.tgt
        texts = [clean(vocabulary.decode(part.ids)) for part in parts]
        return Translation(
            text=masked.unmask(join_texts(texts)),
            score=sum(part.score for part in parts),
            log_prob=sum(part.log_prob for part in parts),
            tokens=tuple(masked.unmask(vocabulary.piece(token)) for part in parts for token in part.ids),
            ids=tuple(parts[0].ids) if len(parts) == 1 else None,
        )


def _symbols(ids: Sequence[int]) -> Counter[int]:
    """How often each symbol of a placeholder is among ids."""
    return Counter(token for token in ids if token in PLACEHOLDER_IDS)


def _printable(text: str) -> str:
    """A text without letters as it is, unless it has control characters or half characters."""
    return clean(text) if any(unicodedata.category(one) in ("Cc", "Cs") for one in text) else text


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
