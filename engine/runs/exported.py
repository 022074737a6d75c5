"""A directory that `tfm export` made for CTranslate2: a run to translate with, and nothing else.

    mine.ct2/
      model.bin, config.json, *_vocabulary.json    what CTranslate2 loads
      model.json                                   the description, as in a checkpoint
      manifest.json                                sha256 and size of each file above
      tokenizer/                                   the run's vocabularies
      export.json                                  where it comes from; marks the directory as ours to replace
      README.md                                    how to translate with it without tfm

Nothing here needs CTranslate2.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...system.errors import ModelError
from ...system.files import json_bytes, sha256_file, write_file
from ...system.untrusted import check_fields, read_object
from .checkpoint import EXPORT_MARK, EXPORTED, ModelDescription, manifest, read_description, read_file, write_manifest

if TYPE_CHECKING:
    from ...data.tokenizer import Tokenizer

FORMAT_VERSION = 2


@dataclass(frozen=True)
class Origin:
    """The content of `export.json`.

    Attributes:
        checkpoint: That of the run it was made of, as the command named it.
    """

    tfm_version: str
    checkpoint: str
    quantization: str
    format: int = FORMAT_VERSION

    @property
    def run(self) -> str:
        """The run it was made of."""
        return str(Path(self.checkpoint).parents[1]) if len(Path(self.checkpoint).parts) > 2 else "RUN"


@dataclass(frozen=True)
class StoredExport:
    """What translating with an export takes, hashes checked: the files that CTranslate2 reads, by name."""

    directory: Path
    origin: Origin
    description: ModelDescription
    tokenizer: "Tokenizer"
    files: dict[str, bytes]


def seal(directory: Path, origin: Origin, description: bytes) -> None:
    """Writes what says what a directory holds, when CTranslate2's files are in it."""
    write_file(directory / "model.json", description)
    names = [name for name in ("model.json", *EXPORTED) if (directory / name).exists()]
    files = {name: directory / name for name in names}
    write_manifest(directory, {name: (sha256_file(path), path.stat().st_size) for name, path in files.items()})
    write_file(directory / EXPORT_MARK, json_bytes(vars(origin)))


def read_origin(directory: Path) -> Origin:
    """Where an export comes from; ModelError if that is damaged, or of another tfm."""
    path = directory / EXPORT_MARK
    content = read_object(path)
    if content.get("format") != FORMAT_VERSION:
        raise ModelError(f"{directory} was made by another tfm, which kept less or more in it; export the run again")
    check_fields(content, Origin, path)
    try:
        return Origin(**content)
    except TypeError as error:
        raise ModelError(f"{path} is damaged: something is missing in it") from error


def read_export(directory: Path) -> StoredExport:
    """Reads an export; ModelError if something in it is damaged or missing."""
    from ...data.tokenizer import Tokenizer
    from .directory import check_tokenizer

    origin, description = read_origin(directory), read_description(directory)
    tokenizer = Tokenizer.load(directory / "tokenizer")
    check_tokenizer(tokenizer, description.tokenizer_sha256, directory / "tokenizer")
    files = {name: read_file(directory, name) for name in manifest(directory) if name in EXPORTED}
    return StoredExport(directory, origin, description, tokenizer, files)
