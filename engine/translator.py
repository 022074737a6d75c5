"""Text to text: tokenize, search, detokenize. The public Python interface of a trained run.

A text becomes a `Job`: cleaned, with symbols for its placeholders, cut into parts that the model can read. Its parts
are searched for freely. Those whose output lacks a term of the glossary, lacks a placeholder or repeats itself are
searched for once more, and the second output has to be better. This is the one way to a translation: validation,
evaluation, documents and the comparison with an export take it. What searches is a `searcher`: the model of a run here,
or CTranslate2 with an export.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch

from ..data.cleaning import check_texts, clean
from ..data.facts import MIN_LETTERS, CorpusFacts
from ..data.placeholders import SYMBOLS
from ..data.slips import slips
from ..data.tokenizer import PLACEHOLDER_IDS, UNK_ID, Tokenizer
from ..seq2seq.decoding.beam import Beam, build_search
from ..seq2seq.decoding.config import DecodingConfig
from ..seq2seq.decoding.greedy import Greedy
from ..seq2seq.decoding.search import Search
from ..system.errors import DataError, ModelError, UsageError, check_type
from ..system.reporter import say_nothing, shortened
from .device import by_length, cores_for_batches, in_batches
from .runs.checkpoint import Purpose
from .runs.directory import RunDirectory
from .runs.load import FromRun, TrainedRun
from .searcher import ModelSearcher, Searcher
from .translation import Job, Part, Translation, takes_search

if TYPE_CHECKING:
    from ..data.glossary import Glossary
    from ..seq2seq.decoding.phrases import Phrase
    from ..seq2seq.model.decoder_only import DecoderOnly
    from ..seq2seq.model.encoder_decoder import Transformer
    from .exported_searcher import ExportedSearcher
    from .projection import Calibration
    from .spelling import Speller

MAX_BATCH_TOKENS = 12_000
"""Source positions, padding included and times the rows of a search, that are searched together at most."""
_MIN_BATCH_TOKENS = 1_000
"""Batches are not made smaller than this to occupy another core: Python's overhead would dominate."""


class Translator(FromRun):
    """Translates text with a trained model.

    >>> translator = Translator.load("runs/mine")
    >>> translator.translate(["the cat sees the house."])[0].text
    'die Katze sieht das Haus.'

    Args:
        model: The model of a run, or what searches with its export.
        decoding: Defaults of the search.
        warn: Receives a sentence when a text had to be cut inside a sentence.
    """

    purpose: ClassVar[Purpose | None] = "translator"

    def __init__(
        self,
        model: "Transformer | DecoderOnly | ExportedSearcher",
        tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
        facts: CorpusFacts | None = None,
        *,
        warn: Callable[[str], None] = say_nothing,
    ) -> None:
        self.tokenizer = tokenizer
        self.decoding = decoding or DecodingConfig()
        self.facts = facts or CorpusFacts()
        self.warn = warn
        forbidden = tokenizer.tgt.forbidden_ids()
        self.searcher: Searcher = ModelSearcher(model, forbidden) if isinstance(model, torch.nn.Module) else model
        self.max_seq_len = self.searcher.max_seq_len
        self._max_source = self.max_seq_len - 1  # eos takes one place
        self.calibration: Calibration | None = None

    @property
    def model(self) -> "Transformer | DecoderOnly":
        """The model itself; UsageError for an export, which names its run."""
        return self.searcher.model

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.searcher.device

    @classmethod
    def _load(cls, run: str | Path, checkpoint: str, device: str, warn: Callable[[str], None]) -> Self:
        directory = RunDirectory(run)
        if directory.is_export:
            found = cls._of_export(directory, checkpoint, device, warn)
        else:
            found = super()._load(run, checkpoint, device, warn)
        if found.checkpoint is not None and directory.calibration.exists():
            from .projection import read_calibration  # most runs have none

            try:
                found.calibration = read_calibration(directory.calibration, found.checkpoint)
            except ModelError as error:  # no translation depends on it
                warn(f"{error}; nothing is projected until it is made anew: tfm evaluate --calibrate")
        return found

    @classmethod
    def _of_export(cls, directory: RunDirectory, checkpoint: str, device: str, warn: Callable[[str], None]) -> Self:
        from .exported_searcher import ExportedSearcher
        from .runs.exported import read_export

        if checkpoint != "best":
            raise UsageError(f"{directory} is an export of one checkpoint; leave --checkpoint {checkpoint} out")
        stored = read_export(directory.path)
        decoding, facts = stored.description.decoding_config(), stored.description.corpus_facts()
        found = cls(ExportedSearcher(stored, device), stored.tokenizer, decoding, facts, warn=warn)
        found.checkpoint = stored.directory
        return found

    @classmethod
    def of(cls, loaded: TrainedRun, warn: Callable[[str], None] = say_nothing) -> Self:
        """See `FromRun.of`."""
        model: Any = loaded.model
        description = loaded.description
        decoding, facts = description.decoding_config(), description.corpus_facts()
        return cls(model, loaded.tokenizer, decoding, facts, warn=warn)

    def search(
        self,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        no_repeat_ngram_size: int | None = None,
    ) -> Greedy | Beam:
        """The run's own search, with what is given instead of its beam size, length penalty and so on.

        >>> Translator.load("runs/mine").search(beam_size=8, length_penalty=1.0).size
        8

        Raises:
            TypeError: A value is no number.
            ValueError: A value is out of range, or `n_best` exceeds the beam size given.
        """
        check_type(beam_size, "beam_size", int, type(None))
        check_type(length_penalty, "length_penalty", float, int, type(None))
        check_type(n_best, "n_best", int)
        check_type(no_repeat_ngram_size, "no_repeat_ngram_size", int, type(None))
        return build_search(self.decoding, beam_size, length_penalty, n_best, no_repeat_ngram_size)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        search: Search | None = None,
        prefixes: Sequence[str] | str | None = None,
        first_line: int | Sequence[int] = 0,
        glossary: "Glossary | None" = None,
        repair: bool | None = None,
    ) -> list[Translation]:
        """Translates texts, in order, one translation for each.

        >>> translator = Translator.load("runs/mine")
        >>> translations = translator.translate(["a dog finds a red ball.", ""], search=Beam(4, n_best=2))
        >>> [translation.text for translation in translations]
        ['ein Hund findet einen roten Ball.', '']
        >>> len(translations[0].alternatives)
        2
        >>> translator.translate(["the cat sees the house."], prefixes=["ein Hund"])[0].text.startswith("ein Hund")
        True

        Texts longer than the model allows are split at sentence ends and their translations joined. Blank texts give
        blank translations. A text without letters is its own translation, unless the training pairs show otherwise.

        Args:
            beam_size: Hypotheses kept; 1 is greedy search. Short for `search=translator.search(beam_size)`.
            search: `Greedy`, `Sample` or `Beam`. Without it and without a beam size, the run's own search.
            prefixes: What the translations begin with: one beginning for each text, or a string for all of them; an
                empty one leaves a translation free. The last word of a prefix may go on: `Haus` can become `Haustür`.
                Of a text that has to be split, the first part takes the prefix. A blank text stays blank. Nothing
                follows a prefix that is as long as the run's limit for its text.
            first_line: Number of the first text in a longer stream, or the number of each; a sample and a warning
                depend on it.
            glossary: Terms whose translations are given. A text whose free translation lacks one is searched once
                more, by a beam search that ends no output without its terms.
            repair: Search once more where an output lacks placeholders that are carried through or repeats itself.
                True does both, False neither; None does the second only where the training targets do not repeat
                themselves. Samples stay as they are.

        Raises:
            ValueError: Both `beam_size` and `search` are given, the beam size is below 1, or there are not as many
                prefixes as texts.
            DataError: A prefix is longer than the model allows, or has characters that its vocabulary lacks.
            TypeError: One text came instead of several, one of them is no string, or another argument is of a type
                that it cannot have.
        """
        check_texts(texts)
        check_type(repair, "repair", bool, type(None))
        check_type(first_line, "first_line", int, Sequence)
        if glossary is not None:
            from ..data.glossary import Glossary  # it comes with the first glossary

            check_type(glossary, "glossary", Glossary)
        if not (search is None or callable(search)):
            raise TypeError(f"search must be Greedy, Sample or Beam, but is {search!r:.60}")
        if search is not None and beam_size is not None:
            raise ValueError("give beam_size or search, not both: a search has its own beam size")
        search = search or self.search(beam_size)
        starts = self._encode_prefixes(prefixes, len(texts))
        lines = range(first_line, first_line + len(texts)) if isinstance(first_line, int) else first_line
        jobs = [self._job(*one, glossary) for one in zip(texts, lines, starts, strict=True)]
        if self.calibration is not None and self.calibration.holds_for(search):
            for job, start in zip(jobs, starts, strict=True):
                job.calibration = None if start else self.calibration  # what is given is no sign of quality
        parts = [part for job in jobs for part in job.parts]
        self._find(parts, search)
        if glossary is not None:
            self._write_terms(parts, search)
        if isinstance(search, Greedy | Beam):
            if repair is not False:
                self._restore_placeholders(parts, search)
            if self.facts.loops_are_faults if repair is None else repair:
                self._break_loops(parts, search)
        return [job.translation() for job in jobs]

    def is_searched(self, text: str) -> bool:
        """Whether a text takes a search: a blank one does not, nor one without letters where the corpus keeps it."""
        return takes_search(clean(text), self.tokenizer, self.facts)

    def _job(self, text: str, line: int, prefix: list[int], glossary: "Glossary | None") -> Job:
        cleaned, encode = clean(text), self.tokenizer.src.encode
        job = Job(text, self.tokenizer.mask(cleaned), self.tokenizer, self.facts)
        if not takes_search(cleaned, self.tokenizer, self.facts):
            return job
        read = job.masked.text
        if not prefix and not self._is_usual(read):
            from ..data.usual_form import in_usual_form  # most texts are in it

            form = in_usual_form(read, self.tokenizer.src, self.facts)
            if glossary is not None and form.slips:
                lost = Counter(glossary.wanted(read)) - Counter(glossary.wanted(form.text))
                if lost:  # a term looked like a slip
                    form = in_usual_form(read, self.tokenizer.src, self.facts, mends=False)
            if glossary is None or not any(map(glossary.wanted, form.unread)):
                read, job.restore, job.unread, job.slips = form
            if not read:  # nothing of it is known
                return job
        encoded = [(read, encode(read))]
        if len(encoded[0][1]) > self._max_source:
            from ..data.sentences import split_text  # most texts are short

            pieces, cut = split_text(read, lambda part: len(encode(part)), self._max_source)
            if cut:
                self.warn(f"line {line + 1} has a sentence longer than {self._max_source} pieces; translated in parts")
            encoded = [(piece, encode(piece)) for piece in pieces]
        for number, (piece, ids) in enumerate(encoded):
            start = [] if number else prefix
            as_written = len(encoded) == 1 and not job.slips
            written = job.masked.text if as_written else piece  # terms may be in capitals
            terms = glossary.wanted(written) if glossary else []
            job.parts.append(Part(job, f"{line}.{number}", piece, ids, start, self._max_length(ids, start), terms))
        return job

    def _is_usual(self, text: str) -> bool:
        """Whether a text is read as it stands."""
        is_known = self._known.issuperset(text) and not slips(text, self.tokenizer.src)
        return is_known and self.facts.is_usual(text)

    @cached_property
    def _known(self) -> frozenset[str]:
        """The characters that a source may have."""
        return self.tokenizer.src.characters.union(SYMBOLS, " ")

    def _max_length(self, source: Sequence[int], prefix: Sequence[int], phrases: "Sequence[Phrase]" = ()) -> int:
        """Most pieces of an output, eos included: a prefix, phrases and eos always have room."""
        longest = self.max_seq_len
        limit = self.decoding.max_decode_len(len(source), longest)
        return max(min(limit + sum(phrase.longest for phrase in phrases), longest), len(prefix) + 1)

    # --- once more ---

    @cached_property
    def _speller(self) -> "Speller":
        from .spelling import Speller  # most translations have nothing that must be written

        return Speller(self.tokenizer.tgt)

    def _write_terms(self, parts: list[Part], search: Search) -> None:
        """Where an output lacks a term, takes one that has it, or more of them."""
        lacking = [(part, terms) for part in parts if part.missed and (terms := self._terms(part.terms))]
        forced = [self._once_more(part, (part.phrases or ()) + terms) for part, terms in lacking]
        self._find_forced(forced, search)
        for (part, _), second in zip(lacking, forced, strict=True):
            if len(second.missed) < len(part.missed):
                part.found, part.constrained = second.found, True

    def _restore_placeholders(self, parts: list[Part], search: Greedy | Beam) -> None:
        """Where an output has other placeholders than its source, takes one that has the same, if it is good enough."""
        wrong = [part for part in parts if part.wrong_placeholders]
        for part in wrong:
            symbols = [character for character in part.text if character in SYMBOLS]
            part.phrases = self._speller.placeholders(symbols, part.text)
        for part, second in self._find_again(wrong, search):
            if second.wrong_placeholders < part.wrong_placeholders and second.is_better_than(part):
                self._repair(part, second)

    def _break_loops(self, parts: list[Part], search: Greedy | Beam) -> None:
        """Where an output repeats itself, takes one that does not, if it is good enough."""
        looping = [part for part in parts if part.is_loop]
        without_loops = replace(search, no_repeat_ngram_size=loop_size(self.tokenizer))
        for part, second in self._find_again(looping, without_loops):
            part.job.looped = True
            if second.is_better_than(part) and not second.is_loop:
                self._repair(part, second)

    def _find_again(self, parts: list[Part], search: Search) -> Iterator[tuple[Part, Part]]:
        """Searches for parts once more; each with the same part as it was found now.

        Only where its output then lacks a term, the search is forced to write the terms, too.
        """
        again = [self._once_more(part, part.phrases) for part in parts]
        self._find([part for part in again if part.phrases is None], search)
        self._find_forced([part for part in again if part.phrases is not None], search)
        self._write_terms(again, search)
        return zip(parts, again, strict=True)

    def _once_more(self, part: Part, phrases: "tuple[Phrase, ...] | None") -> Part:
        max_length = self._max_length(part.ids, part.prefix, phrases or ())
        return replace(part, phrases=phrases, max_length=max_length, constrained=False)

    @staticmethod
    def _repair(part: Part, second: Part) -> None:
        part.found, part.constrained, part.job.repaired = second.found, second.constrained, True

    # --- searching ---

    def _find(self, parts: list[Part], search: Search) -> None:
        """Searches for parts in batches of similar length, and keeps what was found in them."""
        lengths, cores = [len(part.ids) for part in parts], cores_for_batches(self.device)
        most, least = (tokens // search.rows for tokens in (MAX_BATCH_TOKENS, _MIN_BATCH_TOKENS))
        batches = by_length(lengths, most, cores=cores, min_tokens=least)
        found = in_batches(self.device, partial(self.searcher.search, search), parts, batches)
        for part, hypotheses in zip(parts, found, strict=True):
            part.found = hypotheses

    def _find_forced(self, parts: list[Part], search: Search) -> None:
        """Searches as another search does, for outputs that must contain something."""
        if not parts:
            return
        from ..seq2seq.decoding.constrained import ConstrainedBeam  # most outputs have what they must

        alike = search
        if not isinstance(alike, Beam):
            once = search.no_repeat_ngram_size if isinstance(search, Greedy) else 0
            alike = Beam(self.decoding.beam_size, search.length_penalty, no_repeat_ngram_size=once)
        symbols = tuple(PLACEHOLDER_IDS) if self.tokenizer.has_placeholders else ()
        forced = ConstrainedBeam(alike, symbols)
        by_rows: dict[int, list[Part]] = {}  # in a batch, all sentences have as many rows as the one that needs most
        for part in parts:
            rows = forced.rows_for(part.phrases or ())
            by_rows.setdefault(1 << (rows - 1).bit_length(), []).append(part)
        for rows, some in by_rows.items():
            self._find(some, replace(forced, most_rows=min(rows, forced.most_rows)))

    def _terms(self, terms: list[str]) -> "tuple[Phrase, ...]":
        """What terms become; nothing where that is longer than the model writes."""
        phrases = tuple(filter(None, map(self._speller.term, terms)))
        return phrases if sum(one.longest for one in phrases) < self.max_seq_len // 2 else ()

    def _encode_prefixes(self, prefixes: Sequence[str] | str | None, count: int) -> list[list[int]]:
        """Target pieces of what each translation begins with."""
        if prefixes is None:
            return [[]] * count
        if isinstance(prefixes, str):
            return [self._encode_prefix(prefixes)] * count
        check_texts(prefixes, "prefixes")
        if len(prefixes) != count:
            raise ValueError(f"there are {count} texts, but {len(prefixes)} prefixes")
        return [self._encode_prefix(prefix, f"prefixes[{place}]") for place, prefix in enumerate(prefixes)]

    def _encode_prefix(self, prefix: str, called: str = "the prefix") -> list[int]:
        ids = self.tokenizer.tgt.encode(prefix)
        name, longest = f"{called} {shortened(prefix, 60)!r}", self.max_seq_len - 1  # eos takes one place
        if len(ids) > longest:
            raise DataError(f"{name} has {len(ids)} pieces, but this model writes at most {longest}; shorten it")
        if UNK_ID in ids:
            raise DataError(f"{name} has a character or a word that is not in the target vocabulary; leave it out")
        return ids


def loop_size(tokenizer: Tokenizer) -> int:
    """How many pieces in a row have about as many letters as the shortest loop, whatever the vocabulary."""
    return max(3, round(MIN_LETTERS / tokenizer.tgt.letters_per_piece))
