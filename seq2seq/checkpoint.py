"""Checkpoints: immutable directories, complete or absent. safetensors and JSON, never pickle.

    checkpoints/step-000500/
      model.safetensors       the weights
      ema.safetensors         their exponential moving average, if the run keeps one
      optimizer.safetensors   the optimizer's moments
      model.json              everything needed to rebuild the model and its defaults; says which weights to use
      state.json              where training stands
      manifest.json           sha256 and size of each file above, written last

Every file is hashed before it is parsed, and what is parsed are the bytes that were hashed.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..data.errors import EnvironmentFault, ModelError
from ..data.files import json_bytes, remove_tree, sha256_bytes, staged_directory, write_file
from .decoding.config import DecodingConfig
from .model.config import ModelConfig
from .model.transformer import Transformer
from .run_directory import checkpoint_path, checkpoint_step, list_checkpoints

FORMAT_VERSION = 1
_MAX_JSON_BYTES = 1_000_000
_REQUIRED = ("model.json", "model.safetensors", "state.json")


@dataclass(frozen=True)
class ModelDescription:
    """The content of `model.json`."""

    format: int
    tfm_version: str
    model: dict[str, Any]
    src_vocab_size: int
    tgt_vocab_size: int
    shared_vocab: bool
    tokenizer_sha256: str
    weights: str
    """Which weights validation, best and translate use: `ema` or `model`."""
    decoding: dict[str, Any]

    def build(self) -> Transformer:
        """A model of this description, its weights not yet loaded."""
        return Transformer(
            ModelConfig(**self.model),
            src_vocab_size=self.src_vocab_size,
            tgt_vocab_size=self.tgt_vocab_size,
            shared_vocab=self.shared_vocab,
        )

    def decoding_config(self) -> DecodingConfig:
        """The run's decoding defaults."""
        return DecodingConfig(**self.decoding)


def write_checkpoint(
    run: Path,
    step: int,
    *,
    tensors: Mapping[str, dict[str, Tensor]],
    description: ModelDescription,
    state: dict[str, Any],
) -> Path:
    """Writes a checkpoint, then reads it back and verifies it.

    Args:
        tensors: File stem (`model`, `ema`, `optimizer`) to named tensors.
        description: What goes to `model.json`.
        state: What goes to `state.json`.

    Raises:
        EnvironmentFault: It could not be written, or did not read back as written.
    """
    target = checkpoint_path(run, step)
    contents = {f"{name}.safetensors": safetensors.torch.save(_contiguous(group)) for name, group in tensors.items()}
    contents["model.json"] = json_bytes(asdict(description))
    contents["state.json"] = json_bytes(state)
    manifest = {name: {"sha256": sha256_bytes(content), "size": len(content)} for name, content in contents.items()}
    with staged_directory(target) as staged:
        for name, content in contents.items():
            write_file(staged / name, content)
        write_file(staged / "manifest.json", json_bytes({"format": FORMAT_VERSION, "files": manifest}))
    if reason := damage(target):
        raise EnvironmentFault(f"{target} does not read back as written ({reason}); is the disk failing?")
    return target


def _contiguous(group: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu").contiguous() for name, tensor in group.items()}


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


def valid_checkpoints(run: Path) -> tuple[list[Path], list[str]]:
    """The sound checkpoints of a run, oldest first, and what is wrong with the others."""
    sound: list[Path] = []
    problems: list[str] = []
    for directory in list_checkpoints(run):
        if reason := damage(directory):
            problems.append(reason)
        else:
            sound.append(directory)
    return sound, problems


def best_checkpoint(checkpoints: list[Path]) -> Path | None:
    """The one whose validation scored highest, the earliest of equals; None if none was validated."""
    return next(iter(_best_first({path: read_state(path).get("score") for path in checkpoints})), None)


def _best_first(scores: Mapping[Path, float | None]) -> list[Path]:
    """The checkpoints that were validated, highest score first, the earlier of equals."""
    scored = {path: score for path, score in scores.items() if score is not None}
    return sorted(scored, key=lambda path: (-scored[path], checkpoint_step(path)))


def find_checkpoint(run: Path, which: str = "best", *, warn: Callable[[str], None] = lambda text: None) -> Path:
    """The checkpoint that `--checkpoint` names.

    Args:
        warn: Hears of damaged checkpoints that are passed over.
        which: `best` (highest validation score; the last one if none was validated), `last`, or a step.

    Raises:
        ModelError: There is no such run, or it has no such sound checkpoint.
    """
    if not run.is_dir():
        raise ModelError(f"there is no run {run}; train one with tfm train --run {shlex.quote(str(run))}")
    if which not in ("best", "last"):
        by_step = {str(checkpoint_step(path)): path for path in list_checkpoints(run)}
        directory = by_step.get(which.lstrip("0") or "0")
        if directory is None:
            steps = ", ".join(by_step) or "none"
            raise ModelError(f"{run} has no checkpoint {which!r}; it has best, last and the steps: {steps}")
        if reason := damage(directory):
            raise ModelError(reason)
        return directory
    problems: dict[Path, str] = {}
    for directory in _by_preference(run, which, problems):
        if reason := damage(directory):
            problems[directory] = reason
            continue
        for passed_over in sorted(problems, key=checkpoint_step):
            warn(f"{problems[passed_over]}; using {directory.name}")
        return directory
    reasons = "; ".join(problems[path] for path in sorted(problems, key=checkpoint_step))
    raise ModelError(f"no valid checkpoint in {run}{f' ({reasons})' if reasons else '; train it first: tfm train'}")


def _by_preference(run: Path, which: str, problems: dict[Path, str]) -> list[Path]:
    """A run's checkpoints in the order in which to try them, so that no more of them than need be are read whole.

    Args:
        run: The run.
        which: `best` or `last`.
        problems: Receives those whose score cannot be read, and what is wrong with them.
    """
    newest_first = list_checkpoints(run)[::-1]
    if which == "last":
        return newest_first
    scores: dict[Path, float | None] = {}
    for directory in newest_first:
        try:
            scores[directory] = read_state(directory).get("score")
        except ModelError as error:
            problems[directory] = str(error)
    return _best_first(scores) + [path for path, score in scores.items() if score is None]


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
        ModelConfig(**description.model)
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


def read_tensors(directory: Path, name: str) -> dict[str, Tensor]:
    """The tensors of one `.safetensors` file.

    Raises:
        ModelError: Missing or damaged.
    """
    try:
        return safetensors.torch.load(read_file(directory, f"{name}.safetensors"))
    except safetensors.SafetensorError as error:
        raise ModelError(f"{directory / name}.safetensors is damaged: {error}") from error


def model_tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    """The parameters by name, shared ones once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: Transformer, directory: Path, name: str) -> None:
    """Copies the tensors of a checkpoint file into a model.

    Raises:
        ModelError: Names or shapes do not match.
    """
    tensors = read_tensors(directory, name)
    parameters = dict(model.named_parameters())
    if set(tensors) != set(parameters):
        raise ModelError(f"{directory / name}.safetensors does not hold the weights that model.json describes")
    with torch.no_grad():
        for key, parameter in parameters.items():
            if tensors[key].shape != parameter.shape:
                raise ModelError(
                    f"{directory / name}.safetensors: {key} has shape {tuple(tensors[key].shape)},"
                    f" model.json describes {tuple(parameter.shape)}"
                )
            parameter.copy_(tensors[key])


_DRAWS = (Tensor.uniform_, Tensor.normal_, nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)


class _Undrawn(TorchFunctionMode):
    """Inside it no random weights are drawn for a model whose weights are about to be loaded."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def load_model(directory: Path, *, device: str | torch.device = "cpu") -> tuple[Transformer, ModelDescription]:
    """Rebuilds the model of a checkpoint, in evaluation mode, with the weights that it says to use.

    Raises:
        ModelError: The checkpoint is damaged.
    """
    description = read_description(directory)
    with _Undrawn():
        model = description.build()
    load_weights(model, directory, description.weights)
    return model.to(device).eval(), description


def prune_checkpoints(run: Path, *, keep: int) -> None:
    """Removes old checkpoints: all but the newest `keep` and the best of them all."""
    sound, _ = valid_checkpoints(run)
    best = best_checkpoint(sound)
    for directory in sound[:-keep]:
        if directory != best:
            remove_tree(directory)
