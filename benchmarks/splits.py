"""Makes the splits of the project's own from public sources, so that anybody can repeat its figures.

    python benchmarks/splits.py tatoeba --output $TFM_CORPORA/tatoeba_en_fr
    python benchmarks/splits.py cmudict --output $TFM_CORPORA/cmudict_g2p
    python benchmarks/splits.py documentation --output $TFM_CORPORA/python_docs_es

Each source is one commit of a repository on GitHub, which is fetched as an archive; `--archive FILE` takes one that
you have. Which part a sentence goes to follows from a hash of it, so the same source gives the same files, to the byte:
the SHA-256 of what was written is compared with that of the files that the figures rest on.
"""

import argparse
import hashlib
import io
import re
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polib
from common import BenchmarkError, note, report_errors

Parts = dict[str, list[str]]
"""File names, each with its lines."""
LONGEST = {"en": 600, "es": 700}
"""Characters of a message of the documentation, and of its translation."""


@dataclass(frozen=True)
class Archive:
    """The files of a repository."""

    files: dict[str, bytes]

    def text(self, name: str) -> str:
        """A file of text.

        Raises:
            BenchmarkError: There is none of this name.
        """
        return self.content(name).decode("utf-8")

    def content(self, name: str) -> bytes:
        """A file.

        Raises:
            BenchmarkError: There is none of this name.
        """
        if name not in self.files:
            raise BenchmarkError(f"the archive has no {name}")
        return self.files[name]


def sha1(text: str) -> str:
    """The hash that decides about parts and order."""
    return hashlib.sha1(text.encode()).hexdigest()


def share(text: str, parts: int) -> int:
    """A number below `parts` that is always the same for a text."""
    return int(sha1(text), 16) % parts


def tatoeba(archive: Archive) -> Parts:
    """English-French: no pair twice, no English sentence in two parts; of a test sentence all translations are kept."""
    with zipfile.ZipFile(io.BytesIO(archive.content("fra-eng.zip"))) as packed:
        lines = packed.read("fra.txt").decode("utf-8").splitlines()
    pairs = dict.fromkeys(tuple(" ".join(field.split()) for field in line.split("\t")[:2]) for line in lines)
    parts: Parts = {}
    bounds = {"valid": range(15), "test": range(15, 30), "train": range(45, 1000)}  # 30 to 44 are in no part
    for part, numbers in bounds.items():
        chosen = [pair for pair in pairs if share(pair[0].lower(), 1000) in numbers]
        if part == "train":
            chosen.sort(key=lambda pair: sha1("\t".join(pair)))
            parts |= {"train.en": [pair[0] for pair in chosen], "train.fr": [pair[1] for pair in chosen]}
            continue
        references: dict[str, list[str]] = {}
        for english, french in chosen:
            references.setdefault(english, []).append(french)
        order = sorted(references, key=lambda english: sha1(f"{english}\t{references[english][0]}"))
        parts[f"{part}.en"] = order
        parts[f"{part}.fr"] = [references[english][0] for english in order]
        parts[f"{part}.refs.fr.tsv"] = ["\t".join(references[english]) for english in order]
    return parts


def cmudict(archive: Archive) -> Parts:
    """Letters to phones without stress; of a test word all pronunciations are kept."""
    words: dict[str, list[str]] = {}
    for line in archive.text("cmudict.dict").splitlines():
        name, *phones = line.partition("#")[0].split()
        word = re.sub(r"\(\d+\)$", "", name)
        if re.fullmatch(r"[a-z']+", word):
            spoken = " ".join(re.sub(r"\d", "", phone) for phone in phones)
            if spoken not in words.setdefault(word, []):
                words[word].append(spoken)
    parts: Parts = {}
    for part, numbers in {"valid": range(20), "test": range(20, 110), "train": range(110, 1000)}.items():
        order = sorted((word for word in words if share(f"g2p{word}", 1000) in numbers), key=sha1)
        every = part == "train"  # each pronunciation is a pair to train on
        rows = [(word, spoken) for word in order for spoken in words[word][: None if every else 1]]
        parts[f"{part}.src"] = [" ".join(word) for word, _ in rows]
        parts[f"{part}.tgt"] = [spoken for _, spoken in rows]
        if not every:
            parts[f"{part}.refs.tsv"] = ["\t".join(words[word]) for word in order]
    return parts


def documentation(archive: Archive) -> Parts:
    """Messages of Python's documentation, English-Spanish: a file is in one part, and so is a message."""
    parts: Parts = {f"{part}.{side}": [] for part in ("train", "valid", "test") for side in ("en", "es")}
    for part, english, spanish in _messages(archive):
        parts[f"{part}.en"].append(english)
        parts[f"{part}.es"].append(spanish)
    return parts


def _messages(archive: Archive) -> Iterator[tuple[str, str, str]]:
    """Part, message and translation. A message of several files is in the training, if one of these is."""
    names = sorted(name for name in archive.files if name.endswith(".po"))
    known: set[str] = set()
    for part, numbers in {"train": range(7, 100), "valid": range(4, 7), "test": range(4)}.items():
        for name in names:
            messages = polib.pofile(archive.text(name)) if share(f"po{name}", 100) in numbers else ()
            for message in messages:
                english, spanish = (" ".join(text.split()) for text in (message.msgid, message.msgstr))
                fits = len(english) <= LONGEST["en"] and len(spanish) <= LONGEST["es"]
                done = spanish not in ("", english) and not message.fuzzy and not message.obsolete
                if done and fits and english not in known:
                    known.add(english)
                    yield part, english, spanish


@dataclass(frozen=True)
class Source:
    """Where a corpus comes from, how it is divided, and what comes of it.

    Attributes:
        repository: On GitHub.
        commit: The one that was used.
        divide: Makes the parts.
        sha256: Of all lines of all parts, in the order of the names of these.
        licence: Of the text.
    """

    repository: str
    commit: str
    divide: Callable[[Archive], Parts]
    sha256: str
    licence: str


SOURCES = {
    "tatoeba": Source(
        "genimind/seq2seq",
        "4f3f8eb0adde54fcc8b89394336b002e7961244c",
        tatoeba,
        "5fb44d896c75c0dbe2a142d34f73363ea13d4070fb0d95dd08df3cb33951c06c",
        "CC BY 2.0, tatoeba.org and manythings.org/anki",
    ),
    "cmudict": Source(
        "cmusphinx/cmudict",
        "0f8072f814306c5ee4fbf992ed853601b12c01f9",
        cmudict,
        "6402450aae8cb81858b7551807c5c6c3c5895e6d3bffe64d96b3a9705daf313b",
        "BSD, Carnegie Mellon University",
    ),
    "documentation": Source(
        "python/python-docs-es",
        "91f4ccc0baa8c7cbeb739e696c641388264caa30",
        documentation,
        "0c7f6da0b5ea586fb9417fb2e7c2db8e6d03d3acc1739ea4f2fa52ef122cc64f",
        "Python's documentation",
    ),
}


def fetched(source: Source, path: Path | None) -> Archive:
    """The files of a repository at a commit, from GitHub or from an archive at hand.

    Raises:
        BenchmarkError: There is no network, or the archive cannot be read.
    """
    address = f"https://codeload.github.com/{source.repository}/tar.gz/{source.commit}"
    try:
        if path is None:
            with urllib.request.urlopen(address, timeout=60) as answer:
                content = answer.read()
        else:
            content = path.read_bytes()
        with tarfile.open(fileobj=io.BytesIO(content)) as packed:
            members = [(one, packed.extractfile(one)) for one in packed if one.isfile()]
            return Archive({one.name.partition("/")[2]: file.read() for one, file in members if file is not None})
    except (urllib.error.URLError, OSError, tarfile.TarError) as error:
        raise BenchmarkError(f"{path or address}: {error}") from error


def written(parts: Parts, folder: Path) -> str:
    """Writes the files; returns the SHA-256 of all that they hold."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for name in sorted(parts):
        content = "".join(f"{line}\n" for line in parts[name]).encode()
        digest.update(content)
        (folder / name).write_bytes(content)
    return digest.hexdigest()


def main() -> None:
    """Fetches one source, divides it, writes it, and says whether it is the one that was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SOURCES)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="for the files")
    parser.add_argument(
        "--archive", type=Path, metavar="FILE.tar.gz", help="the repository at this commit, in a folder"
    )
    options = parser.parse_args()
    source = SOURCES[options.name]
    parts = source.divide(fetched(source, options.archive))
    digest = written(parts, options.output)
    for name in sorted(parts):
        note(f"{options.output / name}: {len(parts[name]):,} lines")
    same = "the files that were measured" if digest == source.sha256 else "NOT the files that were measured"
    note(f"{same} (SHA-256 {digest}); licence of the text: {source.licence}")


if __name__ == "__main__":
    report_errors(main)
