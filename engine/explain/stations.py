"""The walk through a forward pass: at each station a formula, its shapes, its source, its code, its numbers.

Formulas are LaTeX, and once more in plain characters for a terminal. `{layer}` in the name of an array stands for the
number of the layer that is looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ...seq2seq.model.config import ModelConfig, unknown

TITLES = {
    "Paper": "Vaswani et al. (2017), Attention Is All You Need",
    "Yang 2024a": "Brandon Yang, Transformer: Explained in Math and PyTorch",
    "Yang 2024b": "Brandon Yang, Transformers: A Mathematical Explanation and Implementation in PyTorch",
    "Peng 2023": "Benji Peng, A Gentle Intro to Transformers",
    "Anonymous n.d.": "Anonymous: a blog post after the textbooks of Bishop & Bishop (2024) and Prince (2024)",
    "Su 2021": "Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding",
    "Wu 2016": "Wu et al. (2016), Google's Neural Machine Translation System",
    "Zhou n.d.": "Baohua Zhou, Study note on transformer",
}
"""Texts by the keys of docs/sources.md."""

Kind = Literal[
    "pieces", "vector", "heat", "matrix", "statistics", "weighted", "lines", "grid", "layers", "candidates", "early",
    "choice", "heads_off", "checkpoints"
]  # fmt: skip
Axis = Literal["src", "tgt", "seq"]
"""Whose positions rows or columns stand for: the source's, the target's, or those of one sequence of both."""


@dataclass(frozen=True)
class View:
    """Numbers to look at.

    Attributes:
        kind: How they are drawn.
        label: What they are.
        array: Name of the array, as in `trace`.
        rows, columns: Whose positions they stand for.
        by_head: Whether its first dimension is the heads.
    """

    kind: Kind
    label: str = ""
    array: str = ""
    rows: Axis = "src"
    columns: Axis = "src"
    by_head: bool = False


@dataclass(frozen=True)
class Station:
    """One step of the walk.

    Attributes:
        id: Identifies it.
        part: The part of the model that it belongs to.
        title: Of the station.
        says: What happens here, in a sentence or two.
        formula: In LaTeX; empty where nothing is computed.
        plain: The same in plain characters.
        shapes: Symbols with their sizes, and what they mean.
        sources: Keys of `TITLES`, and the section.
        code: File and name of what computes it.
        views: What to look at.
    """

    id: str
    part: str
    title: str
    says: str
    formula: str = ""
    plain: str = ""
    shapes: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    code: tuple[str, str] = ("", "")
    views: tuple[View, ...] = ()


@dataclass(frozen=True)
class Sizes:
    """What shapes are made of: positions of each axis, and pieces of the output vocabulary."""

    config: ModelConfig
    lengths: dict[str, int]
    vocabulary: int
    has_checkpoints: bool = False
    text_only: bool = False
    """There is no source: a text alone is continued."""


_ALL = ("Yang 2024a", "Yang 2024b", "Anonymous n.d.", "Zhou n.d.")


def _cite(paper: str, *keys: tuple[str, str] | str) -> tuple[tuple[str, str], ...]:
    """Sources: the section of the paper, if any, then texts."""
    first = (("Paper", paper),) if paper else ()
    return first + tuple((key, "") if isinstance(key, str) else key for key in keys)


def stations(sizes: Sizes) -> list[Station]:
    """The whole walk through a model, in the order in which it computes.

    Args:
        sizes: Of the model and of the sentence.
    """
    match sizes.config.architecture:
        case "encoder_decoder":
            return [*_encoder_decoder(sizes)]
        case "decoder_only":
            return [*_decoder_only(sizes)]
        case "encoder_only":
            return [*_encoder_only(sizes)]
        case _:
            raise unknown("architecture", sizes.config.architecture)


def _encoder_decoder(sizes: Sizes) -> Iterator[Station]:
    yield _pieces(
        "Both texts become pieces of a fixed vocabulary, each with a number. </s> ends the source. <s> begins what the"
        " decoder reads: at each step, all that it has written so far."
    )
    yield from _embedding(sizes, "src_embedding", "Source embedding", "src")
    yield from _layer(sizes, "encoder", "Encoder layer", "src", "padding")
    yield _stack(sizes, "encoder", "Encoder", "src", sizes.config.num_encoder_layers)
    yield from _embedding(sizes, "tgt_embedding", "Target embedding", "tgt")
    yield from _decoder_layer(sizes)
    yield _stack(sizes, "decoder", "Decoder", "tgt", sizes.config.num_decoder_layers)
    yield from _output(sizes)


def _decoder_only(sizes: Sizes) -> Iterator[Station]:
    one = (
        "The text becomes pieces of a fixed vocabulary, each with a number. <s> begins it; the model continues it."
        if sizes.text_only
        else "Source and target become one sequence of pieces, each with a number: the source, </s>, <s>, the target."
    )
    yield _pieces(one)
    yield from _embedding(sizes, "embedding", "Embedding", "seq")
    yield from _layer(sizes, "decoder", "Layer", "seq", "causal")
    yield _stack(sizes, "decoder", "Stack", "seq", sizes.config.num_decoder_layers)
    yield from _output(sizes)


def _encoder_only(sizes: Sizes) -> Iterator[Station]:
    yield _pieces("The text becomes pieces of a fixed vocabulary, each with a number. </s> ends it.")
    yield from _embedding(sizes, "embedding", "Embedding", "src")
    yield from _layer(sizes, "encoder", "Layer", "src", "padding")
    yield _stack(sizes, "encoder", "Stack", "src", sizes.config.num_encoder_layers)
    D = sizes.config.d_model
    yield Station(
        "vector",
        "The sentence",
        "One vector for the whole sentence",
        "The vectors of all pieces are averaged, and the average is scaled to length 1. Two sentences of one meaning"
        " should have vectors of one direction: the sum of the products of their elements is then near 1.",
        r"\mathbf{m} = \frac{1}{n} \sum_{i=1}^{n} \mathbf{z}_i \qquad"
        r" \mathbf{s} = \frac{\mathbf{m}}{\lVert \mathbf{m} \rVert}",
        "m = mean of z_1 .. z_n;  s = m / |m|",
        ((f"m, s: {D}", "the average, and the vector of the sentence"),),
        (),
        ("seq2seq/model/encoder_only.py", "EncoderOnly.embed"),
        (View("vector", "the average m", "sentence.mean"), View("vector", "the sentence s", "sentence.vector")),
    )
    yield _attention_of_all(sizes, "src")


def _pieces(says: str) -> Station:
    return Station(
        "pieces",
        "The text",
        "Text to pieces",
        says,
        code=("data/tokenizer.py", "Vocabulary.encode"),
        sources=_cite("section 5.1", ("Yang 2024a", "Input Embeddings")),
        views=(View("pieces"),),
    )


def _embedding(sizes: Sizes, module: str, part: str, axis: Axis) -> Iterator[Station]:
    config = sizes.config
    n, D = sizes.lengths[axis], config.d_model
    scaled = config.scale_embeddings
    yield Station(
        f"{module}-tokens",
        part,
        "Each piece becomes a vector",
        "Row by row, the numbers of the pieces choose rows of a learned matrix E."
        + (f" They are multiplied by the root of d_model, which is {D**0.5:.4g} here." if scaled else ""),
        r"\mathbf{X} = \mathbf{E}[\text{ids}]" + (r"\,\sqrt{d_{\text{model}}}" if scaled else ""),
        "X = E[ids]" + (" * sqrt(d_model)" if scaled else ""),
        ((f"X: n × d_model = {n} × {D}", "a vector for each piece"),),
        _cite("section 3.4", ("Yang 2024a", "Input Embeddings"), ("Zhou n.d.", "Preliminary")),
        ("seq2seq/model/embedding.py", "Embedding"),
        (
            View("vector", "the row of E", f"{module}.tokens", axis),
            *((View("vector", "the row times the root of d_model", f"{module}.scaled", axis),) if scaled else ()),
        ),
    )
    if config.positions in ("rotary", "none"):
        return
    sinusoidal = config.positions == "sinusoidal"
    yield Station(
        f"{module}-positions",
        part,
        "Where each piece stands",
        "Attention by itself knows no order. So a vector of the position is added to the vector of the piece. "
        + (
            "Each pair of columns is a sine and a cosine; to the right they turn more slowly."
            if sinusoidal
            else "The vectors of the positions are learned."
        ),
        r"\operatorname{PE}(pos, 2i) = \sin\left(\frac{pos}{10000^{2i/d_{\text{model}}}}\right) \quad"
        r" \operatorname{PE}(pos, 2i+1) = \cos\left(\frac{pos}{10000^{2i/d_{\text{model}}}}\right) \qquad"
        r" \mathbf{Z} = \mathbf{X} + \operatorname{PE}"
        if sinusoidal
        else r"\mathbf{Z} = \mathbf{X} + \mathbf{P}",
        "PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(same);  Z = X + PE"
        if sinusoidal
        else "Z = X + P",
        ((f"{'PE' if sinusoidal else 'P'}, Z: n × d_model = {n} × {D}", "vectors of positions, and the sum"),),
        _cite("section 3.5", ("Yang 2024a", "Positional Encoding"), "Yang 2024b", "Anonymous n.d.", "Zhou n.d."),
        ("seq2seq/model/embedding.py", "sinusoidal_positions" if sinusoidal else "LearnedPositions"),
        (
            View("heat", "the first positions (rows) and their columns", f"{module}.picture", axis),
            View("vector", "the vector of the position", f"{module}.positions", axis),
            View("vector", "the sum Z, which enters the first layer", module, axis),
        ),
    )


def _layer(sizes: Sizes, stack: str, part: str, axis: Axis, mask: Literal["padding", "causal"]) -> Iterator[Station]:
    """Self-attention in every detail, then feed-forward."""
    module = f"{stack}.layers.{{layer}}"
    attention = f"{module}.self_attn"
    pre = sizes.config.norm_order == "pre"
    if pre:
        yield _norm_before(sizes, f"{attention}_residual", part, axis, "attention")
    yield from _self_attention(sizes, attention, part, axis, mask)
    yield _residual(sizes, f"{attention}_residual", part, axis, attention, "attention")
    yield from _feed_forward(sizes, f"{module}.feed_forward", part, axis)


def _rotary(sizes: Sizes, module: str, part: str, axis: Axis) -> Station:
    n, dk = sizes.lengths[axis], sizes.config.key_size
    return Station(
        f"{module}-rotary",
        part,
        "Turned by where they stand",
        "Attention by itself knows no order. So each pair of columns of a query or key is turned, like the hand of a"
        " clock, by an angle that grows with the position. The product of two of them then depends on how far apart"
        " they stand.",
        r"\begin{pmatrix} q'_{2i} \\ q'_{2i+1} \end{pmatrix} ="
        r" \begin{pmatrix} \cos \alpha & -\sin \alpha \\ \sin \alpha & \cos \alpha \end{pmatrix}"
        r" \begin{pmatrix} q_{2i} \\ q_{2i+1} \end{pmatrix} \qquad \alpha = \frac{pos}{10000^{2i/d_k}}",
        "q'_2i = q_2i cos(a) - q_2i+1 sin(a), q'_2i+1 = q_2i sin(a) + q_2i+1 cos(a), a = pos / 10000^(2i / d_k);"
        " k' the same",
        ((f"Q', K': n × d_k = {n} × {dk}", "of one head; from here on they are called Q and K"),),
        _cite("", ("Su 2021", "section 3.2")),
        ("seq2seq/model/rotary.py", "RotaryPositions"),
        tuple(
            View("vector", f"the {name}, turned", f"{module}.{letter}", axis, by_head=True)
            for name, letter in (("query", "q"), ("key", "k"))
        ),
    )


def _self_attention(
    sizes: Sizes, module: str, part: str, axis: Axis, mask: Literal["padding", "causal"]
) -> Iterator[Station]:
    config = sizes.config
    n, D, H, dk, dv = sizes.lengths[axis], config.d_model, config.num_heads, config.key_size, config.value_size
    bias, rotary = config.attention_bias, config.positions == "rotary"
    before = "rotary." if rotary else ""
    z, plain_z = _read_by_sublayer(config, "Z")
    code = "seq2seq/model/attention.py"

    def matrix(label: str, part: str) -> View:
        return View("matrix", label, f"{module}.{part}", axis, axis, by_head=True)

    yield Station(
        f"{module}-qkv",
        part,
        "Queries, keys and values",
        "Each head projects every vector three times: to what it looks for (the query), to what it can be found by (the"
        " key), and to what it passes on (the value).",
        r" \quad ".join(
            rf"\mathbf{{{letter}}} = {z}\mathbf{{W}}^{letter}" + (rf" + \mathbf{{b}}^{letter}" if bias else "")
            for letter in "QKV"
        ),
        ", ".join(f"{letter} = {plain_z} W^{letter}" + (f" + b^{letter}" if bias else "") for letter in "QKV"),
        (
            (f"Q, K: n × d_k = {n} × {dk}", "of one head"),
            (f"V: n × d_v = {n} × {dv}", "of one head"),
            (f"W^Q: d_model × d_k = {D} × {dk}", f"there are {H} heads, each with its own"),
        ),
        _cite(
            "section 3.2",
            ("Yang 2024a", "Attention"),
            "Yang 2024b",
            ("Peng 2023", "Self-attention Mechanism"),
            *_ALL[2:],
        ),
        (code, "MultiHeadAttention.forward"),
        tuple(
            View("vector", f"the {name}", f"{module}.{array}", axis, by_head=True)
            for name, array in (("query q", f"{before}q"), ("key k", f"{before}k"), ("value v", "v"))
        ),
    )
    if rotary:
        yield _rotary(sizes, module, part, axis)
    yield Station(
        f"{module}-products",
        part,
        "Every query meets every key",
        "The product of a query and a key is large where the two point the same way. Row i holds the products of query"
        " i with all keys.",
        r"\mathbf{Q}\mathbf{K}^T \qquad (\mathbf{Q}\mathbf{K}^T)_{ij} = \mathbf{q}_i \cdot \mathbf{k}_j",
        "(Q K^T)_ij = q_i · k_j",
        ((f"Q K^T: n × n = {n} × {n}", "a number for each pair of positions"),),
        _cite("section 3.2.1", ("Yang 2024a", "Scaled Dot-Product Attention"), "Peng 2023"),
        (code, "attention_scores"),
        (matrix("Q K^T", "products"),),
    )
    yield Station(
        f"{module}-scores",
        part,
        "Divided by the root of d_k",
        "The sum of d_k products grows with d_k. Without the division the softmax would give nearly all to one"
        " position, and hardly learn.",
        r"\mathbf{S} = \frac{\mathbf{Q}\mathbf{K}^T}{\sqrt{d_k}}",
        "S = Q K^T / sqrt(d_k)",
        ((f"sqrt(d_k) = sqrt({dk}) = {dk**0.5:.4g}", "what all numbers are divided by"),),
        _cite("section 3.2.1, equation 1", ("Yang 2024a", "Scaled Dot-Product Attention"), "Peng 2023", "Zhou n.d."),
        (code, "attention_scores"),
        (matrix("Q K^T / sqrt(d_k)", "scores"),),
    )
    causal = mask == "causal"
    yield Station(
        f"{module}-mask",
        part,
        "The mask",
        "Position i may look at itself and at what stands before it. All that comes later gets minus infinity."
        if causal
        else "Padding must not be seen: its scores become minus infinity. A sentence alone has no padding, so here the"
        " mask lets everything through.",
        r"S_{ij} = -\infty \text{ for } j > i" if causal else r"S_{ij} = -\infty \text{ where } j \text{ is padding}",
        "S_ij = -inf for j > i" if causal else "S_ij = -inf where j is padding",
        ((f"mask: n × n = {n} × {n}" if causal else f"mask: 1 × n = 1 × {n}", "true where looking is allowed"),),
        _cite("section 3.2.3", ("Yang 2024a", "Decoder Block"), "Yang 2024b", "Zhou n.d.") if causal else (),
        ("seq2seq/model/masks.py", "causal_mask" if causal else "padding_mask"),
        (matrix("scores after the mask", "masked"),),
    )
    yield Station(
        f"{module}-weights",
        part,
        "Softmax: each row becomes shares",
        "The exponential makes all numbers positive; divided by their sum, each row adds up to 1. It says how the"
        " position divides its attention.",
        r"A_{ij} = \frac{\exp(S_{ij})}{\sum_{k} \exp(S_{ik})} \qquad \sum_j A_{ij} = 1",
        "A_ij = exp(S_ij) / sum_k exp(S_ik)",
        ((f"A: n × n = {n} × {n}", "shares of attention"),),
        _cite("section 3.2.1", ("Peng 2023", "Appendix"), "Anonymous n.d.", ("Zhou n.d.", "Encoder")),
        ("seq2seq/model/softmax.py", "softmax"),
        (matrix("A, the weights", "weights"),),
    )
    yield Station(
        f"{module}-heads",
        part,
        "The weighted sum of values",
        "Each position gets the sum of all values, each times its share.",
        r"\mathbf{o}_i = \sum_j A_{ij} \mathbf{v}_j",
        "o_i = sum_j A_ij v_j",
        ((f"O: n × d_v = {n} × {dv}", "what one head has found for each position"),),
        _cite("section 3.2.1", ("Yang 2024a", "Scaled Dot-Product Attention"), "Peng 2023", "Zhou n.d."),
        (code, "attention"),
        (
            View("weighted", "shares of this position", f"{module}.weights", axis, axis, by_head=True),
            View("vector", "their sum of values", f"{module}.heads", axis, by_head=True),
        ),
    )
    yield Station(
        f"{module}-out",
        part,
        "All heads side by side, then W^O",
        f"The results O of the {H} heads are put side by side. One more matrix mixes them.",
        rf"\operatorname{{MultiHead}}({z}) = \operatorname{{Concat}}(\text{{head}}_1, \ldots, \text{{head}}_H)\,"
        r"\mathbf{W}^O" + (r" + \mathbf{b}^O" if config.output_projection_bias else ""),
        f"MultiHead({plain_z}) = Concat(head_1 .. head_H) W^O" + (" + b^O" if config.output_projection_bias else ""),
        ((f"Concat: n × H d_v = {n} × {H * dv}", "all heads"), (f"W^O: H d_v × d_model = {H * dv} × {D}", "")),
        _cite("section 3.2.2", ("Yang 2024a", "Multi-Head Attention"), "Yang 2024b", "Anonymous n.d.", "Zhou n.d."),
        (code, "MultiHeadAttention"),
        (
            View("vector", "the heads side by side", f"{module}.concat", axis),
            View("vector", "the output of attention", module, axis),
        ),
    )


_NORMED = {
    "pre": (r"\operatorname{LayerNorm}(\mathbf{y}^{(l)})", "LayerNorm(y^(l))"),
    "post": (r"\mathbf{y}^{(l)}", "y^(l)"),
}
"""What of a layer's output the output layer reads."""
_NORM = (
    r"\operatorname{LayerNorm}(\mathbf{x}) = \gamma \odot \frac{\mathbf{x} - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta"
)


def _read_by_sublayer(config: ModelConfig, letter: str) -> tuple[str, str]:
    """What a sub-layer reads, in LaTeX and in plain characters: with pre-norm, the normalised vectors."""
    if config.norm_order == "pre":
        return rf"\tilde{{\mathbf{{{letter}}}}}", f"{letter}~"
    return rf"\mathbf{{{letter}}}", letter


def _norm_before(sizes: Sizes, module: str, part: str, axis: Axis, what: str) -> Station:
    n, D = sizes.lengths[axis], sizes.config.d_model
    return Station(
        f"{module}-norm",
        part,
        f"LayerNorm before {what}",
        "This model normalises before each sub-layer (pre-norm): each vector gets mean 0 and variance 1, then a learned"
        " factor and a learned shift for each column.",
        r"\tilde{\mathbf{x}} = " + _NORM,
        "x~ = LayerNorm(x) = gamma * (x - mean) / sqrt(variance + eps) + beta",
        (
            (f"x: n × d_model = {n} × {D}", "each row is normalised by itself"),
            ("x~, and of all rows Z~ or Y~", "what the next formulas read"),
        ),
        _cite("section 3.1", ("Yang 2024a", "Layer Normalization"), ("Anonymous n.d.", "pre-norm, as a later variant")),
        ("seq2seq/model/layers.py", "Residual"),
        (
            View("vector", "x, as it comes in", f"{module}.norm.in", axis),
            View("statistics", "", f"{module}.norm", axis),
            View("vector", f"x~ = LayerNorm(x), which {what} reads", f"{module}.norm", axis),
        ),
    )


def _residual(sizes: Sizes, module: str, part: str, axis: Axis, sublayer: str, what: str) -> Station:
    """The residual connection around a sub-layer; with post-norm, LayerNorm too."""
    n, D = sizes.lengths[axis], sizes.config.d_model
    pre = sizes.config.norm_order == "pre"
    post_views = (
        View("vector", "the sum", f"{module}.norm.in", axis),
        View("statistics", "", f"{module}.norm", axis),
        View("vector", "LayerNorm of the sum", module, axis),
    )
    return Station(
        f"{module}-residual",
        part,
        f"What {what} found is added" if pre else f"What {what} found is added, then LayerNorm",
        "The vector goes round the sub-layer unchanged, and the output is added to it: the residual connection."
        + ("" if pre else " The sum gets mean 0 and variance 1, then a learned factor and a learned shift."),
        r"\mathbf{x} + \operatorname{SubLayer}(\operatorname{LayerNorm}(\mathbf{x}))"
        if pre
        else r"\operatorname{LayerNorm}(\mathbf{x} + \operatorname{SubLayer}(\mathbf{x})) \qquad" + _NORM,
        "x + SubLayer(LayerNorm(x))" if pre else "LayerNorm(x + SubLayer(x))",
        ((f"x: n × d_model = {n} × {D}", "the residual stream"),),
        _cite("section 3.1", ("Yang 2024a", "Add & Norm"), "Yang 2024b", "Anonymous n.d.", "Zhou n.d."),
        ("seq2seq/model/layers.py", "Residual"),
        (
            View("vector", "x, as it came in", f"{module}.in", axis),
            View("vector", f"the output of {what}", sublayer, axis),
            *((View("vector", "the sum", module, axis),) if pre else post_views),
        ),
    )


def _feed_forward(sizes: Sizes, module: str, part: str, axis: Axis) -> Iterator[Station]:
    config = sizes.config
    n, D, ff = sizes.lengths[axis], config.d_model, config.d_ff
    b2 = config.feed_forward_output_bias
    x, plain_x = _read_by_sublayer(config, "x")
    if config.norm_order == "pre":
        yield _norm_before(sizes, f"{module}_residual", part, axis, "feed-forward")
    match config.activation:
        case "relu":
            says = "ReLU sets negative numbers to 0"
            inner = rf"\max(0, {x}\mathbf{{W}}_1 + \mathbf{{b}}_1)"
            plain = f"max(0, {plain_x} W_1 + b_1)"
        case "gelu":
            says = "GELU bends negative numbers towards 0"
            inner = rf"\operatorname{{GELU}}({x}\mathbf{{W}}_1 + \mathbf{{b}}_1)"
            plain = f"GELU({plain_x} W_1 + b_1)"
        case "swiglu":
            says = "a gate, a second projection through SiLU, says how much of each number passes"
            inner = (
                rf"\left(\operatorname{{SiLU}}({x}\mathbf{{W}}_g + \mathbf{{b}}_g) \odot"
                rf" ({x}\mathbf{{W}}_1 + \mathbf{{b}}_1)\right)"
            )
            plain = f"(SiLU({plain_x} W_g + b_g) * ({plain_x} W_1 + b_1))"
        case _:
            raise unknown("activation", config.activation)
    gate = (
        (View("vector", f"the gate {plain_x} W_g + b_g", f"{module}.gate", axis),)
        if config.activation == "swiglu"
        else ()
    )
    yield Station(
        f"{module}-ff",
        part,
        "Feed-forward: each position by itself",
        f"Each vector is widened to {ff} numbers; {says}; and a second matrix brings it back to {D}.",
        rf"\operatorname{{FFN}}({x}) = {inner}\,\mathbf{{W}}_2" + (r" + \mathbf{b}_2" if b2 else ""),
        f"FFN({plain_x}) = {plain} W_2" + (" + b_2" if b2 else ""),
        (
            (f"W_1: d_model × d_ff = {D} × {ff}", ""),
            (f"hidden: n × d_ff = {n} × {ff}", "after the activation"),
            (f"W_2: d_ff × d_model = {ff} × {D}", ""),
        ),
        _cite("section 3.3", ("Yang 2024a", "Feed-Forward Network"), "Yang 2024b", "Anonymous n.d.", "Zhou n.d."),
        ("seq2seq/model/feed_forward.py", "FeedForward"),
        (
            View("vector", f"{plain_x} W_1 + b_1", f"{module}.linear_1", axis),
            *gate,
            View("vector", "after the activation", f"{module}.hidden", axis),
            View("vector", "the output of feed-forward", module, axis),
        ),
    )
    yield _residual(sizes, f"{module}_residual", part, axis, module, "feed-forward")


def _stack(sizes: Sizes, stack: str, part: str, axis: Axis, layers: int) -> Station:
    n, D = sizes.lengths[axis], sizes.config.d_model
    pre = sizes.config.norm_order == "pre"
    last = f"{stack}.norm" if pre else f"{stack}.layers.{layers - 1}.feed_forward_residual"
    return Station(
        f"{stack}-stack",
        part,
        f"{layers} layers on top of each other" if layers > 1 else "One layer",
        "Each layer reads what the last one wrote; each has its own weights."
        + (" One more LayerNorm ends the stack." if pre else ""),
        r"\mathbf{Z}^{(l)} = \operatorname{Layer}_l(\mathbf{Z}^{(l-1)}), \quad l = 1 \ldots " + str(layers),
        f"Z^(l) = Layer_l(Z^(l-1)), l = 1 .. {layers}",
        ((f"Z: n × d_model = {n} × {D}", "the same after every layer"),),
        _cite("section 3.1", ("Yang 2024a", "Encoder Block"), "Yang 2024b", ("Zhou n.d.", "Encoder")),
        ("seq2seq/model/stacks.py", "Encoder" if stack == "encoder" or axis == "seq" else "Decoder"),
        (
            View(
                "layers", "the chosen piece after each layer", f"{stack}.layers.{{layer}}.feed_forward_residual", axis
            ),
            View("vector", "the output of the stack", last, axis),
        ),
    )


def _decoder_layer(sizes: Sizes) -> Iterator[Station]:
    """Shorter than the encoder's: what differs is who looks at whom."""
    config, part = sizes.config, "Decoder layer"
    m, n, dk = sizes.lengths["tgt"], sizes.lengths["src"], config.key_size
    layer = "decoder.layers.{layer}"
    own, cross = f"{layer}.self_attn", f"{layer}.cross_attn"
    y, plain_y = _read_by_sublayer(config, "Y")
    bias = config.attention_bias
    pre = config.norm_order == "pre"
    if pre:
        yield _norm_before(sizes, f"{own}_residual", part, "tgt", "self-attention")
    for station in _self_attention(sizes, own, part, "tgt", "causal"):
        if station.id.endswith(("-rotary", "-mask", "-weights", "-out")):
            yield replace(station, title=f"Masked self-attention: {station.title[0].lower()}{station.title[1:]}")
    yield _residual(sizes, f"{own}_residual", part, "tgt", own, "self-attention")
    if pre:
        yield _norm_before(sizes, f"{cross}_residual", part, "tgt", "cross-attention")
    yield Station(
        f"{cross}-qkv",
        part,
        "Cross-attention: queries of the target, keys and values of the source",
        "This is where the two sentences meet. The queries come from the target, Y. Keys and values come from M, the"
        " encoder's output, which is the same for all decoder layers.",
        r" \qquad ".join(
            rf"\mathbf{{{letter}}} = {of}\mathbf{{W}}^{letter}" + (rf" + \mathbf{{b}}^{letter}" if bias else "")
            for letter, of in (("Q", y), ("K", r"\mathbf{M}"), ("V", r"\mathbf{M}"))
        ),
        ", ".join(
            f"{letter} = {of} W^{letter}" + (f" + b^{letter}" if bias else "")
            for letter, of in (("Q", plain_y), ("K", "M"), ("V", "M"))
        ),
        (
            (f"Q: m × d_k = {m} × {dk}", "one query for each target position"),
            (f"K, V: n × d_k = {n} × {dk}", "one key and one value for each source position"),
        ),
        _cite(
            "section 3.2.3", ("Yang 2024a", "Decoder Block"), "Yang 2024b", "Anonymous n.d.", ("Zhou n.d.", "Decoder")
        ),
        ("seq2seq/model/layers.py", "DecoderLayer"),
        (
            View("vector", "the query of this step", f"{cross}.q", "tgt", by_head=True),
            View("vector", "the key of the chosen source piece", f"{cross}.k", "src", by_head=True),
            View("vector", "the value of the chosen source piece", f"{cross}.v", "src", by_head=True),
        ),
    )
    yield Station(
        f"{cross}-weights",
        part,
        "Cross-attention: where each step looks",
        "Rows are steps of the output, columns are pieces of the source. Each row adds up to 1.",
        r"\mathbf{A} = \operatorname{softmax}\left(\frac{\mathbf{Q}\mathbf{K}^T}{\sqrt{d_k}}\right)",
        "A = softmax(Q K^T / sqrt(d_k))",
        ((f"A: m × n = {m} × {n}", "shares of the source for each step"),),
        _cite("section 3.2.3", ("Yang 2024a", "Decoder Block"), "Yang 2024b", ("Zhou n.d.", "Decoder")),
        ("seq2seq/model/attention.py", "attention"),
        (
            View("matrix", "Q K^T / sqrt(d_k)", f"{cross}.scores", "tgt", "src", by_head=True),
            View("matrix", "A, the weights", f"{cross}.weights", "tgt", "src", by_head=True),
            View("lines", "the two sentences", f"{cross}.weights", "tgt", "src", by_head=True),
            View("weighted", "shares of this step", f"{cross}.weights", "tgt", "src", by_head=True),
            View("vector", "their sum of values", f"{cross}.heads", "tgt", by_head=True),
            View("vector", "the output of cross-attention", cross, "tgt"),
        ),
    )
    yield _attention_of_all(sizes, "tgt")
    yield _residual(sizes, f"{cross}_residual", part, "tgt", cross, "cross-attention")
    yield from _feed_forward(sizes, f"{layer}.feed_forward", part, "tgt")


def _attention_of_all(sizes: Sizes, axis: Axis) -> Station:
    """The grid of all layers and heads."""
    across = axis == "tgt"
    kind = "cross_attn" if across else "self_attn"
    stack = "encoder" if axis == "src" else "decoder"
    part = {"tgt": "Decoder layer", "seq": "Stack", "src": "Stack"}[axis]
    return Station(
        "all-heads",
        part,
        f"All layers and heads of {'cross-attention' if across else 'attention'}",
        "Each square is one head. Rows are what looks, columns what is looked at.",
        code=("seq2seq/model/attention.py", "recording"),
        sources=_cite("appendix, figures 3 to 5"),
        views=(
            View("grid", "", f"{stack}.layers.{{layer}}.{kind}.weights", axis, "src" if across else axis, by_head=True),
        ),
    )


def _output(sizes: Sizes) -> Iterator[Station]:
    config, V = sizes.config, sizes.vocabulary
    m = sizes.lengths["tgt"]
    bias = config.output_bias
    if config.architecture == "decoder_only":
        yield _attention_of_all(sizes, "seq")
    yield Station(
        "logits",
        "Output",
        "A number for each piece of the vocabulary",
        "The vector of the step is multiplied with the output layer's vector of every piece: the larger the"
        " product, the better the piece fits."
        + (" This matrix is the embedding E itself, used a second time." if config.tie_embeddings else ""),
        r"\mathbf{l} = \mathbf{y}\mathbf{W}" + (r" + \mathbf{b}" if bias else ""),
        "l = y W + b" if bias else "l = y W",
        ((f"l: m × |V| = {m} × {V:,}", "logits, one row for each step"),),
        _cite("section 3.4", ("Yang 2024a", "Decoder Block"), "Yang 2024b", "Anonymous n.d.", ("Zhou n.d.", "Decoder")),
        (f"seq2seq/model/{config.architecture}.py", "Transformer" if config.num_encoder_layers else "DecoderOnly"),
        (View("candidates", "logits"),),
    )
    yield Station(
        "probabilities",
        "Output",
        "Softmax over the vocabulary",
        "The logits become probabilities. Pieces that no text can have, such as <s>, are left out. A temperature T"
        " below 1 makes the likely pieces likelier; one above 1 makes all more alike.",
        r"p_i = \frac{\exp(l_i / T)}{\sum_j \exp(l_j / T)}",
        "p_i = exp(l_i / T) / sum_j exp(l_j / T)",
        ((f"p: |V| = {V:,}", "adds up to 1"), ("T", "the temperature; 1 is what the model was trained with")),
        _cite("section 3.4", "Yang 2024a", "Yang 2024b", ("Anonymous n.d.", ""), ("Zhou n.d.", "Decoder")),
        ("seq2seq/decoding/sampling.py", "restricted_distribution"),
        (View("candidates", "probabilities"),),
    )
    yield Station(
        "early",
        "Output",
        "What each layer would have said",
        "Each layer's vector is sent through the output layer as if the layer were the last one. The answer takes shape"
        " from layer to layer.",
        rf"\operatorname{{softmax}}({_NORMED[config.norm_order][0]}\,\mathbf{{W}}"
        + (r" + \mathbf{b})" if bias else ")"),
        f"softmax({_NORMED[config.norm_order][1]} W" + (" + b)" if bias else ")"),
        code=("engine/explain/probes.py", "early_logits"),
        views=(View("early"),),
    )
    yield Station(
        "choice",
        "Output",
        "The choice",
        "The model gives probabilities; a search makes a text of them. Greedy search takes the likeliest piece each"
        " time. Beam search keeps several beginnings and cuts the others. Sampling draws.",
        r"\hat{y} = \underset{y}{\operatorname{argmax}} \frac{\log P(y \mid x)}{\left((5 + |y|) / 6\right)^\alpha}",
        "best y: log P(y | x) / ((5 + |y|) / 6)^alpha",
        (("|y|", "pieces of the output, </s> included"), ("alpha", "the length penalty")),
        _cite("section 6.1", ("Wu 2016", "equation 14"), ("Zhou n.d.", "the likeliest"), ("Yang 2024a", "drawn")),
        ("seq2seq/decoding/beam.py", "Beam"),
        (View("choice"),),
    )
    yield Station(
        "heads-off",
        "Experiments",
        "Switch a head off",
        "Each head in turn gave zeros. The table says how much less probable the output became, and what greedy search"
        " wrote then. The heads that this sentence needs most stand first.",
        code=("engine/explain/probes.py", "without_each_head"),
        views=(View("heads_off"),),
    )
    if sizes.has_checkpoints:
        yield Station(
            "checkpoints",
            "Experiments",
            "The same sentence as training went on",
            "The run has kept these checkpoints. From one to the next, attention takes form.",
            code=("engine/runs/checkpoint.py", "read_state"),
            views=(
                View("checkpoints", "", "", "tgt", "src", by_head=True)
                if config.num_encoder_layers
                else View("checkpoints", "", "", "seq", "seq", by_head=True),
            ),
        )
