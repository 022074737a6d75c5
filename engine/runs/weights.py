"""Tensors of checkpoints: a model's weights and the optimizer's state, written to safetensors files and read back."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ...seq2seq.model import build
from ...seq2seq.model.build import Model
from ...system.errors import ModelError
from ...system.files import json_bytes
from .checkpoint import ModelDescription, StoredModel, read_file, read_model, write_files

if TYPE_CHECKING:
    from ...seq2seq.training.optimizer import Optimizer


def write_checkpoint(
    target: Path,
    *,
    tensors: Mapping[str, dict[str, Tensor]],
    description: ModelDescription,
    state: dict[str, Any],
    vocabulary: Mapping[str, bytes] | None = None,
) -> None:
    """Writes a checkpoint, then reads it back and verifies it, see `write_files`.

    Args:
        tensors: File stem (`model`, `ema`, `optimizer`) to named tensors.
        description, state: What goes to `model.json` and `state.json`.
        vocabulary: Files of the tokenizer, by name.
    """
    contents = {
        f"{file}.safetensors": safetensors.torch.save(
            {name: tensor.detach().to("cpu").contiguous() for name, tensor in group.items()}
        )
        for file, group in tensors.items()
    }
    contents["model.json"] = json_bytes(asdict(description))
    contents["state.json"] = json_bytes(state)
    contents |= vocabulary or {}
    write_files(target, contents)


def read_tensors(directory: Path, name: str) -> dict[str, Tensor]:
    """The tensors of one `.safetensors` file; ModelError if it is missing or damaged."""
    return _parse(read_file(directory, f"{name}.safetensors"), directory / f"{name}.safetensors")


def _parse(content: bytes, path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(content)
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise ModelError(f"{path} is damaged: {str(error)[:100]}") from error


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters by name, shared ones once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, directory: Path) -> None:
    """Copies the weights of a checkpoint, not their averages, into a model; refuses what `read_weights` refuses."""
    _copy(read_weights(model, directory, "model"), model)


def load_stored(model: nn.Module, stored: StoredModel) -> None:
    """Copies the weights that were read from a checkpoint into a model; refuses what `read_weights` refuses."""
    tensors = _parse(stored.weights, stored.path)
    _refuse_other_weights(tensors, model, stored.path)
    _copy(tensors, model)


@torch.no_grad()
def _copy(tensors: dict[str, Tensor], model: nn.Module) -> None:
    """Moves tensors into a model; the memory of each is free once it is copied."""
    for name, parameter in model.named_parameters():
        parameter.copy_(tensors.pop(name))


def read_weights(model: nn.Module, directory: Path, name: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint file that holds a weight for each parameter of a model.

    ModelError if names, shapes or types do not match, or a number is not finite.
    """
    tensors = read_tensors(directory, name)
    _refuse_other_weights(tensors, model, directory / f"{name}.safetensors")
    return tensors


def _refuse_other_weights(tensors: Mapping[str, Tensor], model: nn.Module, path: Path) -> None:
    parameters = dict(model.named_parameters())
    if tensors.keys() != parameters.keys():
        raise ModelError(f"{path} does not hold the weights that model.json describes")
    for name, tensor in tensors.items():
        shape, described = tuple(tensor.shape), tuple(parameters[name].shape)
        if tensor.dtype != torch.float32:
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise ModelError(f"{path}: {name} has numbers of type {dtype}, but weights are float32")
        if shape != described:
            raise ModelError(f"{path}: {name} has shape {str(shape)[:60]}, model.json describes {described}")
        # Only a sum of finite numbers is finite, and a sum is found several times faster.
        if not bool(tensor.sum().isfinite()) and not bool(tensor.isfinite().all()):
            raise ModelError(
                f"{path}: {name} holds numbers that are not finite: the training diverged; use another --checkpoint"
            )


def load_moments(optimizer: "Optimizer", model: nn.Module, directory: Path) -> None:
    """Gives an optimizer the state that a checkpoint holds; ModelError if it is not that of this model."""
    tensors = read_tensors(directory, "optimizer")
    try:
        optimizer.restore(model, tensors)
    except ValueError as error:
        raise ModelError(f"{directory / 'optimizer.safetensors'} is damaged: {error}") from error


_DRAWS = (Tensor.uniform_, Tensor.normal_, nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)


class _Undrawn(TorchFunctionMode):
    """Inside it models are built without drawing random weights."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def build_model(description: ModelDescription) -> Model:
    """A model of this description; its weights are those of a fresh start."""
    return build.build_model(
        description.model_config(),
        src_vocab_size=description.src_vocab_size,
        tgt_vocab_size=description.tgt_vocab_size,
        shared_vocab=description.shared_vocab,
    )


def blank_model(description: ModelDescription) -> Model:
    """A model of this description whose weights are whatever lies in memory: for its sizes, or to be filled."""
    with _Undrawn():
        return build_model(description)


def described_model(description: ModelDescription) -> Model:
    """The weights of a model of this description without their memory: names and shapes, on torch's `meta` device.

    A table of positions is no weight, and is left out: to count on this device, torch would import for a second.
    """
    if description.model.get("positions", "sinusoidal") != "learned":
        description = replace(description, model={**description.model, "positions": "none"})
    with torch.device("meta"):
        return blank_model(description)


def count_parameters(model: nn.Module) -> int:
    """Learned numbers of a model, shared matrices counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def load_model(directory: Path, *, device: str | torch.device = "cpu") -> tuple[Model, ModelDescription]:
    """Rebuilds the model of a checkpoint, in evaluation mode, with the weights that it says to use."""
    stored = read_model(directory)
    return restore_model(stored, device=device), stored.description


def restore_model(stored: StoredModel, *, device: str | torch.device = "cpu") -> Model:
    """The model that was read from a checkpoint, in evaluation mode.

    Its description is compared with the weights before memory is taken for a model of this size: a ModelError says that
    they do not belong together, or that a weight is not finite.
    """
    tensors = _parse(stored.weights, stored.path)
    _refuse_other_depth(tensors, stored.description, stored.path)
    _refuse_other_weights(tensors, described_model(stored.description), stored.path)
    model = blank_model(stored.description)
    _copy(tensors, model)
    return model.to(device).eval()


def _refuse_other_depth(tensors: Mapping[str, Tensor], description: ModelDescription, path: Path) -> None:
    """Compares the number of layers: to build a thousand of them takes long, even without memory for their weights."""
    config = description.model_config()
    for stack, count in {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}.items():
        if len({name.split(".")[2] for name in tensors if name.startswith(f"{stack}.layers.")}) != count:
            raise ModelError(f"{path} does not hold the weights that model.json describes: {stack} layers differ")
