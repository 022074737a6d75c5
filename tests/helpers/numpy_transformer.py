"""The forward pass of a Transformer in NumPy, in float64, from the tensors of a checkpoint alone.

Written from the formulas of the paper, not from tfm's code: what `tfm explain` shows is compared with it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class NumpyTransformer:
    """Computes a model's forward pass and keeps all results in `found`.

    Args:
        tensors: `model.safetensors`.
        config: The `model` of `model.json`.
    """

    def __init__(self, tensors: Mapping[str, npt.NDArray[Any]], config: Mapping[str, Any]) -> None:
        self._tensors = {name: np.asarray(tensor, dtype=np.float64) for name, tensor in tensors.items()}
        self._config = config
        self.found: dict[str, Array] = {}

    def encoder_decoder(self, src: list[int], tgt_in: list[int]) -> Array:
        """Logits (T, V)."""
        memory = self._stack("encoder", self._embed("src_embedding", src), None)
        y = self._embed("tgt_embedding", tgt_in)
        y = self._stack("decoder", y, _causal(len(tgt_in)), memory)
        return self._output(y)

    def decoder_only(self, src: list[int], tgt_in: list[int]) -> Array:
        """Logits (T, V) at the target's positions."""
        y = self._stack("decoder", self._embed("embedding", [*src, *tgt_in]), _causal(len(src) + len(tgt_in)))
        return self._output(y[len(src) :])

    def encoder_only(self, ids: list[int]) -> Array:
        """The vector (D,) of a sentence."""
        hidden = self._stack("encoder", self._embed("embedding", ids), None)
        mean = hidden.sum(axis=0) / len(ids)
        self.found["sentence.mean"] = mean[None]
        self.found["sentence.vector"] = (mean / math.sqrt((mean * mean).sum()))[None]
        return self.found["sentence.vector"][0]

    @property
    def _known_positions(self) -> int:
        """So many positions there are: as many for each of the two texts that a decoder-only model reads."""
        return self._config["max_seq_len"] * (2 if self._config["architecture"] == "decoder_only" else 1)

    def _tensor(self, *names: str) -> Array:
        """The first of several that exists: shared tensors have one name."""
        return next(self._tensors[name] for name in names if name in self._tensors)

    def _linear(self, name: str, x: Array) -> Array:
        """x W + b, where W is stored transposed and b may be missing."""
        y = x @ self._tensors[f"{name}.weight"].T
        return y + self._tensors[f"{name}.bias"] if f"{name}.bias" in self._tensors else y

    def _output(self, y: Array) -> Array:
        tables = ("output_layer.weight", "tgt_embedding.tokens.weight", "src_embedding.tokens.weight")
        logits = y @ self._tensor(*tables, "embedding.tokens.weight").T
        return logits + self._tensors["output_layer.bias"] if "output_layer.bias" in self._tensors else logits

    def _embed(self, name: str, ids: list[int]) -> Array:
        D = self._config["d_model"]
        rows = self._tensor(f"{name}.tokens.weight", "src_embedding.tokens.weight")[ids]
        scaled = rows * (math.sqrt(D) if self._config["scale_embeddings"] else 1.0)
        self.found |= {f"{name}.tokens": rows, f"{name}.scaled": scaled}
        x = scaled
        match self._config["positions"]:
            case "sinusoidal":
                positions = np.zeros((max(len(ids), min(64, self._known_positions)), D))
                for pos in range(len(positions)):
                    for i in range(D // 2):
                        angle = pos / 10000 ** (2 * i / D)
                        positions[pos, 2 * i], positions[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
                self.found[f"{name}.positions"] = positions[: len(ids)]
                self.found[f"{name}.picture"] = positions
                x = x + positions[: len(ids)]
            case "learned":
                table = self._tensors[f"{name}.positions.weight"]
                self.found |= {f"{name}.positions": table[: len(ids)], f"{name}.picture": table[:64]}
                x = x + self.found[f"{name}.positions"]
        self.found[name] = x
        return x

    def _stack(self, name: str, x: Array, mask: Array | None, memory: Array | None = None) -> Array:
        layers = self._config["num_encoder_layers" if name == "encoder" else "num_decoder_layers"]
        for layer in range(layers):
            x = self._layer(f"{name}.layers.{layer}", x, mask, memory)
        return self._norm(f"{name}.norm", x) if self._config["norm_order"] == "pre" else x

    def _layer(self, name: str, x: Array, mask: Array | None, memory: Array | None) -> Array:
        x = self._residual(f"{name}.self_attn", x, lambda x: self._attention(f"{name}.self_attn", x, x, mask))
        if memory is not None:
            x = self._residual(
                f"{name}.cross_attn", x, lambda x: self._attention(f"{name}.cross_attn", x, memory, None)
            )
        return self._residual(f"{name}.feed_forward", x, lambda x: self._feed_forward(f"{name}.feed_forward", x))

    def _residual(self, sublayer_name: str, x: Array, sublayer: Callable[[Array], Array]) -> Array:
        name = f"{sublayer_name}_residual"
        self.found[f"{name}.in"] = x
        if self._config["norm_order"] == "pre":
            out = x + sublayer(self._norm(f"{name}.norm", x))
        else:
            out = self._norm(f"{name}.norm", x + sublayer(x))
        self.found[name] = out
        return out

    def _norm(self, name: str, x: Array) -> Array:
        mean = x.sum(axis=1) / x.shape[1]
        centred = x - mean[:, None]
        variance = (centred * centred).sum(axis=1) / x.shape[1]
        normed = centred / np.sqrt(variance + self._config["norm_eps"])[:, None]
        out = normed * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]
        self.found |= {f"{name}.in": x, f"{name}.mean": mean, f"{name}.variance": variance, name: out}
        return out

    def _attention(self, name: str, x: Array, source: Array, mask: Array | None) -> Array:
        H = self._config["num_heads"]
        q, k, v = (
            np.stack(np.split(self._linear(f"{name}.{letter}_proj", of), H, axis=1))
            for letter, of in (("q", x), ("k", source), ("v", source))
        )  # (H, T, d) each
        if self._config["positions"] == "rotary" and name.endswith("self_attn"):
            self.found |= {f"{name}.rotary.q": q, f"{name}.rotary.k": k}
            q, k = rotated(q), rotated(k)
        products = np.einsum("htd,hsd->hts", q, k)
        scores = products / math.sqrt(q.shape[2])
        masked = scores if mask is None else np.where(mask, scores, -np.inf)
        shares = np.exp(masked - masked.max(axis=2, keepdims=True))
        weights = shares / shares.sum(axis=2, keepdims=True)
        heads = np.einsum("hts,hsd->htd", weights, v)
        concat = np.concatenate(list(heads), axis=1)
        out = self._linear(f"{name}.out_proj", concat)
        parts = {"q": q, "k": k, "v": v, "products": products, "scores": scores, "masked": masked}
        parts |= {"weights": weights, "heads": heads, "concat": concat}
        self.found |= {f"{name}.{part}": value for part, value in parts.items()} | {name: out}
        return out

    def _feed_forward(self, name: str, x: Array) -> Array:
        inner = self._linear(f"{name}.linear_1", x)
        self.found[f"{name}.linear_1"] = inner
        match self._config["activation"]:
            case "relu":
                hidden = np.maximum(inner, 0)
            case "gelu":
                hidden = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
            case _:
                gate = self._linear(f"{name}.gate", x)
                self.found[f"{name}.gate"] = gate
                hidden = gate / (1 + np.exp(-gate)) * inner
        out = self._linear(f"{name}.linear_2", hidden)
        self.found |= {f"{name}.hidden": hidden, name: out}
        return out


def rotated(x: Array) -> Array:
    """Rotary positions as Su et al. (2021) write them, equation 15: x (.., T, d), each row times its own matrix."""
    length, d = x.shape[-2:]
    turned = np.zeros_like(x)
    for m in range(length):
        matrix = np.zeros((d, d))
        for i in range(d // 2):
            cos, sin = math.cos(m * 10000 ** (-2 * i / d)), math.sin(m * 10000 ** (-2 * i / d))
            matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cos, -sin], [sin, cos]]
        turned[..., m, :] = x[..., m, :] @ matrix.T
    return turned


def _causal(length: int) -> Any:
    return np.tril(np.ones((length, length), dtype=bool))
