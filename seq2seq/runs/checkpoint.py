"""Checkpoints: immutable directories, complete or absent. safetensors and JSON, never pickle.

    checkpoints/step-000500/
      model.safetensors       the weights
      ema.safetensors         their exponential moving average, if the run keeps one
      optimizer.safetensors   the optimizer's moments
      model.json              everything needed to rebuild the model and its defaults; says which weights to use
      state.json              where training stands
      manifest.json           sha256 and size of each file above, written last

Every file is hashed before it is parsed, and the bytes that were hashed are the bytes that are parsed. Nothing here
needs torch, so that the command line can look at a run without waiting for it; `weights` turns the files into tensors.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from ...data.errors import EnvironmentFault, ModelError, UsageError
from ...data.files import json_bytes, sha256_bytes, staged_directory, write_file
from ..decoding.config import DecodingConfig
from ..model.config import ModelConfig, unknown

FORMAT_VERSION = 1
_MAX_JSON_BYTES = 1_000_000
_REQUIRED = ("model.json", "model.safetensors", "state.json")
_STEP_NAME = re.compile(r"step-(\d{6,})")


def checkpoint_name(step: int) -> str:
    """The name of the directory that holds the checkpoint of a step."""
    return f"step-{step:06d}"


def checkpoint_step(directory: Path) -> int:
    """The step that a checkpoint directory is named after; -1 if it is not named like one."""
    match = _STEP_NAME.fullmatch(directory.name)
    return int(match[1]) if match else -1


Purpose = Literal["translator", "language model", "sentence encoder"]
COMMANDS: dict[Purpose, str] = {
    "translator": "tfm translate",
    "language model": "tfm generate",
    "sentence encoder": "tfm embed",
}
"""The command that puts a machine to use."""


@dataclass(frozen=True)
class ModelDescription:
    """The content of `model.json`."""

    format: int
    tfm_version: str
    model: dict[str, Any]
    src_vocab_size: int
    """Pieces of the source vocabulary; 0 where there is no source, in a language model."""
    tgt_vocab_size: int
    shared_vocab: bool
    tokenizer_sha256: str
    weights: str
    """Which weights validation, best and translate use: `ema` or `model`."""
    decoding: dict[str, Any]

    def model_config(self) -> ModelConfig:
        """Sizes and choices of the model."""
        return ModelConfig(**self.model)

    @property
    def purpose(self) -> Purpose:
        """What the model was trained to do."""
        match self.model_config().architecture:
            case "encoder_decoder":
                return "translator"
            case "decoder_only":
                return "translator" if self.src_vocab_size else "language model"
            case "encoder_only":
                return "sentence encoder"
            case other:
                raise unknown("architecture", other)

    def require(self, purpose: Purpose, run: object) -> None:
        """Refuses to use the model for anything else than what it was trained for.

        Args:
            purpose: What it is to be used for.
            run: What the user calls it.

        Raises:
            UsageError: It was trained for something else; says which command is for that.
        """
        if self.purpose != purpose:
            raise UsageError(f"{run} is a {self.purpose}, and this needs a {purpose}; use {COMMANDS[self.purpose]}")

    def decoding_config(self) -> DecodingConfig:
        """The run's decoding defaults."""
        return DecodingConfig(**self.decoding)


def write_files(target: Path, contents: Mapping[str, bytes]) -> None:
    """Writes the files of a checkpoint and their manifest, then reads all back and verifies them.

    Raises:
        EnvironmentFault: They could not be written, or did not read back as written.
    """
    manifest = {name: {"sha256": sha256_bytes(content), "size": len(content)} for name, content in contents.items()}
    with staged_directory(target) as staged:
        for name, content in contents.items():
            write_file(staged / name, content)
        write_file(staged / "manifest.json", json_bytes({"format": FORMAT_VERSION, "files": manifest}))
    if reason := damage(target):
        raise EnvironmentFault(f"{target} does not read back as written ({reason}); is the disk failing?")


def read_file(directory: Path, name: str) -> bytes:
    """One file of a checkpoint, its hash checked.

    Raises:
        ModelError: Missing, a link, damaged, or not listed in the manifest.
    """
    try:
        entry = _manifest(directory)[name]
    except KeyError as error:
        raise ModelError(f"{directory / 'manifest.json'} does not list {name}") from error
    content = _plain_file(directory / name)
    if len(content) != entry.get("size") or sha256_bytes(content) != entry.get("sha256"):
        raise ModelError(f"{directory / name} is damaged (its sha256 is not the one in manifest.json)")
    return content


def _manifest(directory: Path) -> dict[str, dict[str, Any]]:
    path = directory / "manifest.json"
    try:
        manifest = json.loads(_plain_file(path, _MAX_JSON_BYTES))
        if (version := manifest["format"]) != FORMAT_VERSION:
            raise ModelError(
                f"{directory} has checkpoint format {version}, this tfm reads {FORMAT_VERSION}; upgrade tfm"
            )
        return {name: dict(entry) for name, entry in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged") from error


def _plain_file(path: Path, max_bytes: int | None = None) -> bytes:
    try:
        if path.is_symlink():
            raise ModelError(f"{path} is a symbolic link; a checkpoint holds plain files")
        if max_bytes is not None and path.stat().st_size > max_bytes:
            raise ModelError(f"{path} is larger than such a file can be")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error


def damage(directory: Path) -> str:
    """What is wrong with a checkpoint; an empty string if every file is there and hashes to what the manifest says."""
    try:
        for name in {*_REQUIRED, *_manifest(directory)}:
            read_file(directory, name)
    except ModelError as error:
        return str(error)
    return ""


def read_description(directory: Path) -> ModelDescription:
    """`model.json` of a checkpoint, checked.

    Raises:
        ModelError: Damaged, or made by a newer tfm.
    """
    path = directory / "model.json"
    try:
        content = json.loads(read_file(directory, "model.json"))
        unknown = set(content) - {field.name for field in fields(ModelDescription)}
        if content.get("format") != FORMAT_VERSION or unknown:
            raise ModelError(
                f"{path} was made by tfm {content.get('tfm_version')}, which this tfm cannot read; upgrade"
            )
        description = ModelDescription(**content)
        description.model_config()
        description.decoding_config()
    except (ValueError, TypeError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error
    return description


def read_state(directory: Path) -> dict[str, Any]:
    """`state.json` of a checkpoint.

    Raises:
        ModelError: Damaged.
    """
    try:
        return json.loads(read_file(directory, "state.json"))
    except ValueError as error:
        raise ModelError(f"{directory / 'state.json'} is damaged: {error}") from error
