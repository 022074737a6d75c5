"""Checkpoints: immutable directories, complete or absent. safetensors and JSON, never pickle.

    checkpoints/step-000500/
      model.safetensors       the weights
      ema.safetensors         their exponential moving average, if the run keeps one
      optimizer.safetensors   the optimizer's moments
      model.json              everything needed to rebuild the model and its defaults; says which weights to use
      state.json              where training stands
      tokenizer.json, *.model the vocabularies once more, should those of the run get lost
      manifest.json           sha256 and size of each file above, written last

Every file is hashed before it is parsed, and the bytes that were hashed are the bytes that are parsed. A checkpoint is
sound in two senses:

    whole     every file that the manifest lists is as it was written (`damage`): training goes on from such a one alone
    to use    model.json, state.json and the weights that model.json names are (`read_model`): translating reads no more

Nothing here needs torch, so that the command line can look at a run without waiting for it; `weights` turns the files
into tensors.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ...data.config import MAX_VOCABULARY_BYTES
from ...data.facts import CorpusFacts
from ...seq2seq.decoding.config import DecodingConfig
from ...seq2seq.model.config import Architecture, ModelConfig
from ...seq2seq.training.config import Objective, TrainingConfig
from ...seq2seq.training.progress import Progress
from ...system.errors import EnvironmentFault, ModelError, UsageError
from ...system.files import json_bytes, sha256_bytes, staged_directory, write_file
from ...system.untrusted import LONGEST_STRING, MAX_JSON_BYTES, check_fields, parse_object, read_plain

FORMAT_VERSION = 1
MAX_TENSORS_BYTES = 20_000_000_000
"""Largest file of tensors."""
_REQUIRED = ("model.json", "model.safetensors", "state.json")
_VOCABULARY = ("tokenizer.json", "tokenizer.model", "src.model", "tgt.model")
EXPORT_MARK = "export.json"
"""The file by which a directory is known as an export that `tfm export` made for CTranslate2."""
EXPORTED = ("model.bin", "config.json", "shared_vocabulary.json", "source_vocabulary.json", "target_vocabulary.json")
"""The files of CTranslate2 in an export, which has a manifest, too."""
MODEL_FILES = ("model.json", "model.safetensors", "ema.safetensors", *_VOCABULARY)
"""The files of a checkpoint that say nothing of its training."""
_FILES = (*MODEL_FILES, "state.json", "optimizer.safetensors", *EXPORTED)
_MOST_BYTES = {
    **dict.fromkeys((".safetensors", ".bin"), MAX_TENSORS_BYTES),
    ".model": MAX_VOCABULARY_BYTES,
    ".json": MAX_JSON_BYTES,
    **dict.fromkeys(EXPORTED[2:], 4 * MAX_VOCABULARY_BYTES),
}
"""The largest size of each file, by its name or its suffix."""
_MOST_PIECES = 10_000_000
"""The most pieces that a vocabulary may have."""
_STEP_NAME = re.compile(r"step-(\d{6,})")


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
"""The command that puts a model to use."""
BEST_METRICS: dict[Purpose, set[str]] = {
    "translator": {"bleu", "chrf", "exact", "loss"},
    "language model": {"loss"},
    "sentence encoder": {"retrieval", "loss"},
}
"""The scores that a validation has: one of them chooses the best checkpoint."""


@dataclass(frozen=True)
class Uses:
    """What an architecture is trained to do on pairs, and on text alone; what it can minimise, its usual loss first."""

    of_pairs: Purpose
    of_text: Purpose | None
    objectives: tuple[Objective, ...]


USES: dict[Architecture, Uses] = {
    "encoder_decoder": Uses("translator", None, ("next_token",)),
    "decoder_only": Uses("translator", "language model", ("next_token",)),
    "encoder_only": Uses("sentence encoder", "sentence encoder", ("contrastive", "masked_lm")),
}


def objective_of(architecture: Architecture, config: TrainingConfig) -> Objective:
    """What is minimised: what the configuration says, else the architecture's usual loss."""
    return config.objective or USES[architecture].objectives[0]


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
    corpus: dict[str, Any] = field(default_factory=dict)
    """What the training pairs are like, see `data.facts`; nothing in checkpoints of an earlier tfm."""
    src_language: str = ""
    """Language of the sources of the training pairs, if the settings or the files name it."""
    tgt_language: str = ""

    def model_config(self) -> ModelConfig:
        """Sizes and choices of the model."""
        return ModelConfig(**self.model)

    @property
    def purpose(self) -> Purpose:
        """What the model was trained to do."""
        uses = USES[self.model_config().architecture]
        return uses.of_pairs if self.src_vocab_size else uses.of_text or uses.of_pairs

    def require(self, purpose: Purpose, run: object) -> None:
        """Refuses a model that was trained for something else, with a UsageError that names the command for that."""
        if self.purpose != purpose:
            raise UsageError(f"{run} is a {self.purpose}, and this needs a {purpose}; use {COMMANDS[self.purpose]}")

    def decoding_config(self) -> DecodingConfig:
        """The run's decoding defaults."""
        return DecodingConfig(**self.decoding)

    def corpus_facts(self) -> CorpusFacts:
        """What the training pairs are like."""
        return CorpusFacts(**self.corpus)


def write_files(target: Path, contents: Mapping[str, bytes]) -> None:
    """Writes the files of a checkpoint and their manifest; EnvironmentFault if they do not read back as written."""
    with staged_directory(target) as staged:
        for name, content in contents.items():
            write_file(staged / name, content)
        write_manifest(staged, {name: (sha256_bytes(content), len(content)) for name, content in contents.items()})
    if reason := damage(target):
        raise EnvironmentFault(f"{target} does not read back as written ({reason}); is the disk failing?")


def write_manifest(directory: Path, files: Mapping[str, tuple[str, int]]) -> None:
    """Writes which files a directory holds: of each its sha256 and its size."""
    entries = {name: {"sha256": sha256, "size": size} for name, (sha256, size) in files.items()}
    write_file(directory / "manifest.json", json_bytes({"format": FORMAT_VERSION, "files": entries}))


def read_file(directory: Path, name: str) -> bytes:
    """One file of a checkpoint or an export; ModelError if it is missing, a link, damaged, or not in the manifest."""
    path, entry = directory / name, manifest(directory).get(name)
    if entry is None:
        raise ModelError(f"{directory / 'manifest.json'} does not list {name}")
    most = _MOST_BYTES.get(name) or _MOST_BYTES[path.suffix]
    content = read_plain(path, min(most, entry["size"]))  # no more than that need be read
    if len(content) != entry["size"] or sha256_bytes(content) != entry["sha256"]:
        raise ModelError(f"{path} is damaged (its sha256 is not the one in manifest.json)")
    return content


def manifest(directory: Path) -> dict[str, dict[str, Any]]:
    """Size and hash of each file of a checkpoint or an export; ModelError if the manifest is damaged."""
    path = directory / "manifest.json"
    content = read_plain(path, MAX_JSON_BYTES)
    listed = parse_object(content, path)
    version, files = listed.get("format"), listed.get("files")
    if type(version) is int and version != FORMAT_VERSION:
        raise ModelError(f"{directory} has checkpoint format {version}, this tfm reads {FORMAT_VERSION}; upgrade tfm")
    if type(version) is not int or not isinstance(files, dict) or not all(_is_entry(entry) for entry in files.values()):
        raise ModelError(f"{path} is damaged")
    if strangers := [name for name in files if name not in _FILES]:
        raise ModelError(f"{path} lists {strangers[0][:40]!r}, which no checkpoint has")
    if json_bytes(listed) != content:  # a byte that changes no meaning, such as a space, has changed all the same
        raise ModelError(f"{path} is damaged: it is not as tfm writes it")
    return files


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("sha256"), str) and type(entry.get("size")) is int


def has_vocabulary(directory: Path) -> bool:
    """Whether a checkpoint has a copy of the vocabularies; those of an earlier tfm have none."""
    return (directory / _VOCABULARY[0]).exists()


def damage(directory: Path) -> str:
    """What is wrong with a whole checkpoint; empty if every file is there and hashes to what the manifest says."""
    try:
        for name in {*_REQUIRED, *manifest(directory)}:
            read_file(directory, name)
    except ModelError as error:
        return str(error)
    return ""


def read_description(directory: Path) -> ModelDescription:
    """`model.json` of a checkpoint, checked; ModelError if it is damaged, or of a newer tfm."""
    path = directory / "model.json"
    content = parse_object(read_file(directory, "model.json"), path)
    if content.get("format") != FORMAT_VERSION or content.keys() - {field.name for field in fields(ModelDescription)}:
        maker = str(content.get("tfm_version"))[:40]
        raise ModelError(f"{path} was made by tfm {maker}, which this tfm cannot read; upgrade")
    check_fields(content, ModelDescription, path)
    try:
        description = ModelDescription(**content)
        check_fields(description.model, ModelConfig, path)
        check_fields(description.decoding, DecodingConfig, path)
        check_fields(description.corpus, CorpusFacts, path)
        description.model_config()
        description.decoding_config()
    except (ValueError, TypeError) as error:
        first, *_ = str(error).splitlines()  # a line for each of its mistakes
        raise ModelError(f"{path} is damaged: {first}") from error
    if description.weights not in ("model", "ema"):
        raise ModelError(f"{path} is damaged: weights cannot be {description.weights[:40]!r}")
    if not 0 <= description.src_vocab_size <= _MOST_PIECES or not 0 < description.tgt_vocab_size <= _MOST_PIECES:
        raise ModelError(f"{path} is damaged: no vocabulary has so many pieces")
    one_size = description.src_vocab_size == description.tgt_vocab_size
    if description.shared_vocab and not one_size and description.purpose != "language model":
        raise ModelError(f"{path} is damaged: a shared vocabulary has one size")
    return description


@dataclass(frozen=True)
class StoredModel:
    """What using a checkpoint takes, hashes checked: the model's description, and the file of weights that it names."""

    checkpoint: Path
    description: ModelDescription
    weights: bytes

    @property
    def path(self) -> Path:
        """The file of weights."""
        return self.checkpoint / f"{self.description.weights}.safetensors"


def read_model(directory: Path) -> StoredModel:
    """Reads what using a checkpoint takes, each file once: neither the moments nor the weights that are not used.

    `state.json`, which says how well the model scored, must be sound, too.
    """
    description = read_description(directory)
    read_file(directory, "state.json")
    return StoredModel(directory, description, read_file(directory, f"{description.weights}.safetensors"))


def read_state(directory: Path) -> dict[str, Any]:
    """`state.json` of a checkpoint, checked. It says at least where training stands."""
    path = directory / "state.json"
    state = parse_object(read_file(directory, "state.json"), path)
    progress = state.get("progress")
    if not isinstance(progress, dict) or type(progress.get("step")) is not int or progress["step"] < 0:
        raise ModelError(f"{path} is damaged: it does not say at which step training stands")
    check_fields(progress, Progress, path)
    known = {field.name for field in fields(RunState)} - {"progress"}
    check_fields({key: value for key, value in state.items() if key in known}, RunState, path)
    for key, value in state.get("environment", {}).items():
        if type(value) not in (str, int) or not f"{key}{value}"[: LONGEST_STRING + 1].isprintable():
            raise ModelError(f"{path} is damaged: environment.{key[:20]} cannot be {repr(value)[:40]}")
    return state


@dataclass(frozen=True)
class RunState:
    """Where a run stood when a checkpoint was written: the content of `state.json`; earlier versions said less."""

    progress: Progress
    max_steps: int | None
    """Updates in all, as planned then; None while that is not known."""
    data: str
    """A hash of the texts that the run is trained and validated on."""
    environment: dict[str, Any]
    """What bit-identical results depend on besides the code and the data."""
    score: float | None
    """The validation score of this very step; checkpoints are ranked by it, and by the loss."""
    loss: float | None


@dataclass(frozen=True)
class Saved:
    """A whole checkpoint to go on from."""

    checkpoint: Path
    state: RunState

    @property
    def step(self) -> int:
        """The step at which it was written."""
        return self.state.progress.step


def read_saved(directory: Path) -> Saved:
    """A checkpoint and its state, to go on from; ModelError if the state is damaged, or lacks something."""
    state = read_state(directory)
    try:
        progress, score, loss = Progress(**state["progress"]), state.get("score"), state.get("loss")
        kept = RunState(progress, state["max_steps"], state["data"], state["environment"], score, loss)
    except KeyError as error:
        raise ModelError(f"{directory / 'state.json'} is damaged: it has no {error}") from error
    return Saved(directory, kept)
