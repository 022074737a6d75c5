"""Tensors of checkpoints: a model's weights and the optimizer's state, written to safetensors files and read back."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ...seq2seq.model import build
from ...seq2seq.model.build import Model as Machine
from ...seq2seq.training.optimizer import Optimizer
from ...system.errors import ModelError
from ...system.files import json_bytes
from ...system.untrusted import parse_object, read_beginning
from .checkpoint import ModelDescription, listed, read_description, read_file, write_files


def write_checkpoint(
    target: Path,
    *,
    tensors: Mapping[str, dict[str, Tensor]],
    description: ModelDescription,
    state: dict[str, Any],
    vocabulary: Mapping[str, bytes] | None = None,
) -> None:
    """Writes a checkpoint, then reads it back and verifies it.

    Args:
        target: Its directory, see `RunDirectory.checkpoint_path`.
        tensors: File stem (`model`, `ema`, `optimizer`) to named tensors.
        description: What goes to `model.json`.
        state: What goes to `state.json`.
        vocabulary: Files of the tokenizer, by name.

    Raises:
        EnvironmentFault: It could not be written, or did not read back as written.
    """
    contents = {f"{name}.safetensors": safetensors.torch.save(_contiguous(group)) for name, group in tensors.items()}
    contents["model.json"] = json_bytes(asdict(description))
    contents["state.json"] = json_bytes(state)
    contents |= vocabulary or {}
    write_files(target, contents)


def _contiguous(group: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu").contiguous() for name, tensor in group.items()}


def read_tensors(directory: Path, name: str) -> dict[str, Tensor]:
    """The tensors of one `.safetensors` file.

    Raises:
        ModelError: Missing or damaged.
    """
    try:
        return safetensors.torch.load(read_file(directory, f"{name}.safetensors"))
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise ModelError(f"{directory / name}.safetensors is damaged: {str(error)[:100]}") from error


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters by name, shared ones once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, directory: Path, name: str) -> None:
    """Copies the tensors of a checkpoint file into a model.

    Raises:
        ModelError: They are not weights of this model, see `read_weights`.
    """
    tensors = read_weights(model, directory, name)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(tensors[key])


def read_weights(model: nn.Module, directory: Path, name: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint file that holds a weight for each parameter of a model.

    Raises:
        ModelError: Names, shapes or types do not match, or a number is not finite.
    """
    tensors, path = read_tensors(directory, name), f"{directory / name}.safetensors"
    parameters = dict(model.named_parameters())
    if set(tensors) != set(parameters):
        raise ModelError(f"{path} does not hold the weights that model.json describes")
    for key, parameter in parameters.items():
        tensor = tensors[key]
        if tensor.shape != parameter.shape or tensor.dtype != torch.float32:
            found = f"{str(tuple(tensor.shape))[:60]} of {str(tensor.dtype).removeprefix('torch.')}"
            raise ModelError(
                f"{path}: {key} has shape {found}, model.json describes {tuple(parameter.shape)} of float32"
            )
        if not bool(tensor.isfinite().all()):
            raise ModelError(
                f"{path}: {key} holds numbers that are not finite: the training diverged; use another --checkpoint"
            )
    return tensors


def load_moments(optimizer: Optimizer, model: nn.Module, directory: Path) -> None:
    """Gives an optimizer the state that a checkpoint holds.

    Raises:
        ModelError: It is not that of this model.
    """
    tensors = read_tensors(directory, "optimizer")
    try:
        optimizer.restore(model, tensors)
    except ValueError as error:
        raise ModelError(f"{directory / 'optimizer.safetensors'} is damaged: {error}") from error


_MAX_HEADER_BYTES = 10_000_000
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


def build_model(description: ModelDescription) -> Machine:
    """A model of this description; its weights are those of a fresh start."""
    return build.build_model(
        description.model_config(),
        src_vocab_size=description.src_vocab_size,
        tgt_vocab_size=description.tgt_vocab_size,
        shared_vocab=description.shared_vocab,
    )


def blank_model(description: ModelDescription) -> Machine:
    """A model of this description whose weights are whatever lies in memory: for its sizes, or to be filled."""
    with _Undrawn():
        return build_model(description)


def stored_parameters(directory: Path, description: ModelDescription) -> int:
    """Learned numbers of the model in a checkpoint, by the header of its weights.

    Raises:
        ModelError: Damaged.
    """
    header = _header(directory / f"{description.weights}.safetensors")
    return sum(math.prod(entry["shape"]) for entry in header.values())


def count_parameters(model: nn.Module) -> int:
    """Learned numbers of a model, shared matrices counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def check_shapes(directory: Path, description: ModelDescription) -> None:
    """Compares the header of a checkpoint's weights with the model described, before memory is taken for either.

    Every size that decides how large the model is must be that of a tensor in the file. When the weights are copied
    into the model, all shapes are compared.

    Raises:
        ModelError: Layers, sizes or types of numbers differ.
    """
    path = directory / f"{description.weights}.safetensors"
    listed(directory, path.name)
    found, config = _header(path), description.model_config()
    layers = {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}
    for stack, count in layers.items():
        numbers = {name.split(".")[2] for name in found if name.startswith(f"{stack}.layers.")}
        if len(numbers) != count:
            raise ModelError(f"{path} does not hold the weights that model.json describes: {stack} layers differ")
    for name, entry in found.items():
        if entry.get("dtype") != "F32":
            raise ModelError(f"{path}: {name} has numbers of type {entry.get('dtype')}, but weights are F32")
    D, positions = config.d_model, config.max_seq_len
    vocabularies = [[size, D] for size in (description.src_vocab_size, description.tgt_vocab_size)]
    expected: dict[str, list[list[int]]] = {
        ".tokens.weight": vocabularies,
        ".linear_1.weight": [[config.d_ff, D]],
        ".q_proj.weight": [[config.num_heads * config.key_size, D]],
        ".v_proj.weight": [[config.num_heads * config.value_size, D]],
    }
    if config.positions == "learned":
        expected[".positions.weight"] = [[positions, D], [2 * positions, D]]
    for ending, shapes in expected.items():
        named = {name: entry for name, entry in found.items() if name.endswith(ending)}
        if not named:
            raise ModelError(f"{path} does not hold the weights that model.json describes: no {ending[1:]}")
        for name, entry in named.items():
            if entry.get("shape") not in shapes:
                wanted = " or ".join(sorted({str(tuple(shape)) for shape in shapes}))
                raise ModelError(
                    f"{path}: {name} has shape {str(tuple(entry['shape']))[:60]}, model.json describes {wanted}"
                )


def _header(path: Path) -> dict[str, dict[str, Any]]:
    """What a file of tensors says of them: its first 8 bytes are the length of the JSON object that follows."""
    start = read_beginning(path, 8)
    content = read_beginning(path, 8 + min(int.from_bytes(start, "little"), _MAX_HEADER_BYTES))[8:]
    header = parse_object(content, path)
    header.pop("__metadata__", None)
    if not all(_is_entry(entry) for entry in header.values()):
        raise ModelError(f"{path} is damaged: a tensor has no shape")
    return header


def _is_entry(entry: Any) -> bool:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    return isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)


def load_model(directory: Path, *, device: str | torch.device = "cpu") -> tuple[Machine, ModelDescription]:
    """Rebuilds the model of a checkpoint, in evaluation mode, with the weights that it says to use.

    Raises:
        ModelError: The checkpoint is damaged.
    """
    description = read_description(directory)
    if description.weights not in ("model", "ema"):
        raise ModelError(f"{directory / 'model.json'} is damaged: weights cannot be {description.weights[:40]!r}")
    check_shapes(directory, description)
    model = blank_model(description)
    load_weights(model, directory, description.weights)
    return model.to(device).eval(), description
