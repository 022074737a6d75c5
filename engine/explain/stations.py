"""The stations of the walk through a model, each with a formula, its shapes, its source, its code and its numbers.

Formulas are LaTeX, and once more in plain characters for a terminal. `{layer}` in the name of an array stands for the
number of the layer that is looked at. `walk` puts the stations of each architecture in order.
"""

from collections.abc import Iterable, Iterator
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
"""The paper, and texts by the keys of docs/sources.md."""
_ATTENTION = "seq2seq/model/attention.py"

Kind = Literal[
    "pieces", "vector", "heat", "matrix", "statistics", "weighted", "lines", "grid", "layers", "candidates", "early",
    "choice", "heads_off", "checkpoints", "left_out", "switches", "patch"
]  # fmt: skip
"""How numbers are drawn, by `page.js`, and printed, by `text`. The last three are drawn by a live page alone."""
Axis = Literal["src", "tgt", "seq"]
"""Rows or columns stand for positions of the source, of the target, or of one sequence of both."""


@dataclass(frozen=True)
class View:
    """Numbers to look at: the array of this name in `trace`, whose rows and columns stand for positions."""

    kind: Kind
    label: str = ""
    array: str = ""
    rows: Axis = "src"
    columns: Axis = "src"
    by_head: bool = False
    """Its first dimension is the heads."""


@dataclass(frozen=True)
class Station:
    """One step of the walk."""

    id: str
    part: str
    title: str
    says: str
    formula: str = ""
    """In LaTeX; `plain` is the same in plain characters. Empty where nothing is computed."""
    plain: str = ""
    shapes: tuple[tuple[str, str], ...] = ()
    """Symbols with their sizes, and what they mean."""
    sources: str = ""
    """`KEY, SECTION; KEY; ..` with the keys of `TITLES`."""
    code: tuple[str, str] = ("", "")
    """File and name of what computes it."""
    views: tuple[View, ...] = ()

    def cited(self) -> list[str]:
        """The sources with their titles."""
        each = (one.partition(", ") for one in self.sources.split("; ") if one)
        return [TITLES[key] + (f" ({section})" if section else "") for key, _, section in each]


@dataclass(frozen=True)
class Section:
    """A module on the walk: a part of the model by this name, whose rows are `length` positions of an axis."""

    config: ModelConfig
    length: int | str
    part: str
    axis: Axis
    module: str

    def at(self, name: str) -> tuple[str, str]:
        """The id and the part of a station."""
        return f"{self.module}-{name}", self.part

    def to(self, ending: str) -> "Section":
        """Another module of the same part, with a longer name."""
        return replace(self, module=self.module + ending)

    def vector(self, label: str, array: str = "", *, by_head: bool = False, kind: Kind = "vector") -> View:
        """Rows of an array of the module, such as `.q`, or of its output."""
        return View(kind, label, self.module + array, self.axis, by_head=by_head)

    def map(self, label: str, array: str, columns: Axis | None = None, kind: Kind = "matrix") -> View:
        """An array of each head, from the positions to themselves or to those of another axis."""
        return View(kind, label, self.module + array, self.axis, columns or self.axis, by_head=True)

    @property
    def size(self) -> str:
        """The shape of a vector for each position."""
        return f"n × d_model = {self.length} × {self.config.d_model}"

    def read(self, letter: str) -> tuple[str, str]:
        """What a sub-layer reads, in LaTeX and in plain characters: with pre-norm, normalised vectors."""
        bold = rf"\mathbf{{{letter}}}"
        return (rf"\tilde{{{bold}}}", f"{letter}~") if self.config.norm_order == "pre" else (bold, letter)


def when(condition: bool, text: str) -> str:
    """A part of a text that depends on the configuration."""
    return text if condition else ""


def embedding(section: Section) -> Iterator[Station]:
    """The vectors of pieces, and of their positions where these are added."""
    config, scaled = section.config, section.config.scale_embeddings
    yield Station(
        *section.at("tokens"),
        "Each piece becomes a vector",
        "Row by row, the numbers of the pieces choose rows of a learned matrix E."
        + when(scaled, f" They are multiplied by the root of d_model, which is {config.d_model**0.5:.4g} here."),
        r"\mathbf{X} = \mathbf{E}[\text{ids}]" + when(scaled, r"\,\sqrt{d_{\text{model}}}"),
        "X = E[ids]" + when(scaled, " * sqrt(d_model)"),
        ((f"X: {section.size}", "a vector for each piece"),),
        "Paper, section 3.4; Yang 2024a, Input Embeddings; Zhou n.d., Preliminary",
        ("seq2seq/model/embedding.py", "Embedding"),
        (
            section.vector("the row of E", ".tokens"),
            *([section.vector("the row times the root of d_model", ".scaled")] if scaled else []),
        ),
    )
    match config.positions:
        case "rotary" | "none":
            return  # nothing is added
        case "sinusoidal":
            symbol, code = "PE", "sinusoidal_positions"
            says = "Each pair of columns is a sine and a cosine; to the right they turn more slowly."
            formula = (
                r"\operatorname{PE}(pos, 2i) = \sin\left(\frac{pos}{10000^{2i/d_{\text{model}}}}\right) \quad"
                r" \operatorname{PE}(pos, 2i+1) = \cos\left(\frac{pos}{10000^{2i/d_{\text{model}}}}\right) \qquad"
                r" \mathbf{Z} = \mathbf{X} + \operatorname{PE}"
            )
            plain = "PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(same);  Z = X + PE"
        case "learned":
            symbol, code, says = "P", "LearnedPositions", "The vectors of the positions are learned."
            formula, plain = r"\mathbf{Z} = \mathbf{X} + \mathbf{P}", "Z = X + P"
        case _:
            raise unknown("positions", config.positions)
    yield Station(
        *section.at("positions"),
        "Where each piece stands",
        f"Attention by itself knows no order. So a vector of the position is added to the vector of the piece. {says}",
        formula,
        plain,
        ((f"{symbol}, Z: {section.size}", "vectors of positions, and the sum"),),
        "Paper, section 3.5; Yang 2024a, Positional Encoding; Yang 2024b; Anonymous n.d.; Zhou n.d.",
        ("seq2seq/model/embedding.py", code),
        (
            section.vector("the first positions (rows) and their columns", ".picture", kind="heat"),
            section.vector("the vector of the position", ".positions"),
            section.vector("the sum Z, which enters the first layer"),
        ),
    )


def projections(inputs: tuple[tuple[str, str], ...], gap: str, *, bias: bool) -> tuple[str, str]:
    """The formulas of Q, K and V, in LaTeX and in plain characters, from what each of them reads."""
    each = list(zip("QKV", inputs, strict=True))
    return (
        gap.join(
            rf"\mathbf{{{x}}} = {of}\mathbf{{W}}^{x}" + when(bias, rf" + \mathbf{{b}}^{x}") for x, (of, _) in each
        ),
        ", ".join(f"{x} = {of} W^{x}" + when(bias, f" + b^{x}") for x, (_, of) in each),
    )


def self_attention(section: Section, *, causal: bool) -> Iterator[Station]:
    """Attention in every detail."""
    yield _projected(section)
    if section.config.positions == "rotary":
        yield _rotary(section)
    yield from _shares(section, causal=causal)
    yield from _mixed(section)


def _projected(section: Section) -> Station:
    config, n, H = section.config, section.length, section.config.num_heads
    D, dk, dv = config.d_model, config.key_size, config.value_size
    kept = ".rotary" if config.positions == "rotary" else ""
    arrays = {"query q": f"{kept}.q", "key k": f"{kept}.k", "value v": ".v"}
    return Station(
        *section.at("qkv"),
        "Queries, keys and values",
        "Each head projects every vector three times: to what it looks for (the query), to what it can be found by (the"
        " key), and to what it passes on (the value).",
        *projections((section.read("Z"),) * 3, r" \quad ", bias=config.attention_bias),
        (
            (f"Q, K: n × d_k = {n} × {dk}", "of one head"),
            (f"V: n × d_v = {n} × {dv}", "of one head"),
            (f"W^Q: d_model × d_k = {D} × {dk}", f"there are {H} heads, each with its own"),
        ),
        "Paper, section 3.2; Yang 2024a, Attention; Yang 2024b; Peng 2023, Self-attention Mechanism; Anonymous n.d.;"
        " Zhou n.d.",
        (_ATTENTION, "MultiHeadAttention.forward"),
        tuple(section.vector(f"the {name}", array, by_head=True) for name, array in arrays.items()),
    )


def _shares(section: Section, *, causal: bool) -> Iterator[Station]:
    """From the products of queries and keys to the shares of attention."""
    n, dk = section.length, section.config.key_size
    yield Station(
        *section.at("products"),
        "Every query meets every key",
        "The product of a query and a key is large where the two point the same way. Row i holds the products of query"
        " i with all keys.",
        r"\mathbf{Q}\mathbf{K}^T \qquad (\mathbf{Q}\mathbf{K}^T)_{ij} = \mathbf{q}_i \cdot \mathbf{k}_j",
        "(Q K^T)_ij = q_i · k_j",
        ((f"Q K^T: n × n = {n} × {n}", "a number for each pair of positions"),),
        "Paper, section 3.2.1; Yang 2024a, Scaled Dot-Product Attention; Peng 2023",
        (_ATTENTION, "attention_scores"),
        (section.map("Q K^T", ".products"),),
    )
    yield Station(
        *section.at("scores"),
        "Divided by the root of d_k",
        "The sum of d_k products grows with d_k. Without the division the softmax would give nearly all to one"
        " position, and hardly learn.",
        r"\mathbf{S} = \frac{\mathbf{Q}\mathbf{K}^T}{\sqrt{d_k}}",
        "S = Q K^T / sqrt(d_k)",
        ((f"sqrt(d_k) = sqrt({dk}) = {dk**0.5:.4g}", "what all numbers are divided by"),),
        "Paper, section 3.2.1, equation 1; Yang 2024a, Scaled Dot-Product Attention; Peng 2023; Zhou n.d.",
        (_ATTENTION, "attention_scores"),
        (section.map("Q K^T / sqrt(d_k)", ".scores"),),
    )
    yield Station(
        *section.at("mask"),
        "The mask",
        "Position i may look at itself and at what stands before it. All that comes later gets minus infinity."
        if causal
        else "Padding must not be seen: its scores become minus infinity. A sentence alone has no padding, so here the"
        " mask lets everything through.",
        r"S_{ij} = -\infty \text{ for } j > i" if causal else r"S_{ij} = -\infty \text{ where } j \text{ is padding}",
        "S_ij = -inf for j > i" if causal else "S_ij = -inf where j is padding",
        ((f"mask: n × n = {n} × {n}" if causal else f"mask: 1 × n = 1 × {n}", "true where looking is allowed"),),
        when(causal, "Paper, section 3.2.3; Yang 2024a, Decoder Block; Yang 2024b; Zhou n.d."),
        ("seq2seq/model/masks.py", "causal_mask" if causal else "padding_mask"),
        (section.map("scores after the mask", ".masked"),),
    )
    yield Station(
        *section.at("weights"),
        "Softmax: each row becomes shares",
        "The exponential makes all numbers positive; divided by their sum, each row adds up to 1. It says how the"
        " position divides its attention.",
        r"A_{ij} = \frac{\exp(S_{ij})}{\sum_{k} \exp(S_{ik})} \qquad \sum_j A_{ij} = 1",
        "A_ij = exp(S_ij) / sum_k exp(S_ik)",
        ((f"A: n × n = {n} × {n}", "shares of attention"),),
        "Paper, section 3.2.1; Peng 2023, Appendix; Anonymous n.d.; Zhou n.d., Encoder",
        ("seq2seq/model/softmax.py", "softmax"),
        (section.map("A, the weights", ".weights"),),
    )


def _mixed(section: Section) -> Iterator[Station]:
    """What the heads find, and how it is mixed."""
    config, n, H = section.config, section.length, section.config.num_heads
    D, dv, bias = config.d_model, config.value_size, config.output_projection_bias
    z, plain_z = section.read("Z")
    yield Station(
        *section.at("heads"),
        "The weighted sum of values",
        "Each position gets the sum of all values, each times its share.",
        r"\mathbf{o}_i = \sum_j A_{ij} \mathbf{v}_j",
        "o_i = sum_j A_ij v_j",
        ((f"O: n × d_v = {n} × {dv}", "what one head has found for each position"),),
        "Paper, section 3.2.1; Yang 2024a, Scaled Dot-Product Attention; Peng 2023; Zhou n.d.",
        (_ATTENTION, "attention"),
        (
            section.map("shares of this position", ".weights", kind="weighted"),
            section.vector("their sum of values", ".heads", by_head=True),
        ),
    )
    yield Station(
        *section.at("out"),
        "All heads side by side, then W^O",
        f"The results O of the {H} heads are put side by side. One more matrix mixes them.",
        rf"\operatorname{{MultiHead}}({z}) = \operatorname{{Concat}}(\text{{head}}_1, \ldots, \text{{head}}_H)\,"
        r"\mathbf{W}^O" + when(bias, r" + \mathbf{b}^O"),
        f"MultiHead({plain_z}) = Concat(head_1 .. head_H) W^O" + when(bias, " + b^O"),
        ((f"Concat: n × H d_v = {n} × {H * dv}", "all heads"), (f"W^O: H d_v × d_model = {H * dv} × {D}", "")),
        "Paper, section 3.2.2; Yang 2024a, Multi-Head Attention; Yang 2024b; Anonymous n.d.; Zhou n.d.",
        (_ATTENTION, "MultiHeadAttention"),
        (section.vector("the heads side by side", ".concat"), section.vector("the output of attention")),
    )


def _rotary(section: Section) -> Station:
    return Station(
        *section.at("rotary"),
        "Turned by where they stand",
        "Attention by itself knows no order. So each pair of columns of a query or key is turned, like the hand of a"
        " clock, by an angle that grows with the position. The product of two of them then depends on how far apart"
        " they stand.",
        r"\begin{pmatrix} q'_{2i} \\ q'_{2i+1} \end{pmatrix} ="
        r" \begin{pmatrix} \cos \alpha & -\sin \alpha \\ \sin \alpha & \cos \alpha \end{pmatrix}"
        r" \begin{pmatrix} q_{2i} \\ q_{2i+1} \end{pmatrix} \qquad \alpha = \frac{pos}{10000^{2i/d_k}}",
        "q'_2i = q_2i cos(a) - q_2i+1 sin(a), q'_2i+1 = q_2i sin(a) + q_2i+1 cos(a), a = pos / 10000^(2i / d_k);"
        " k' the same",
        (
            (
                f"Q', K': n × d_k = {section.length} × {section.config.key_size}",
                "of one head; from here on they are called Q and K",
            ),
        ),
        "Su 2021, section 3.2",
        ("seq2seq/model/rotary.py", "RotaryPositions"),
        (
            section.vector("the query, turned", ".q", by_head=True),
            section.vector("the key, turned", ".k", by_head=True),
        ),
    )


_NORM = (
    r"\operatorname{LayerNorm}(\mathbf{x}) = \gamma \odot \frac{\mathbf{x} - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta"
)


def sublayer(section: Section, what: str, inside: Iterable[Station]) -> Iterator[Station]:
    """The stations inside a sub-layer, between its LayerNorm and its residual connection; `what` names it in words."""
    around, pre = section.to("_residual"), section.config.norm_order == "pre"
    normed = around.vector("", ".norm", kind="statistics")
    if pre:
        yield Station(
            *around.at("norm"),
            f"LayerNorm before {what}",
            "This model normalises before each sub-layer (pre-norm): each vector gets mean 0 and variance 1, then a"
            " learned factor and a learned shift for each column.",
            r"\tilde{\mathbf{x}} = " + _NORM,
            "x~ = LayerNorm(x) = gamma * (x - mean) / sqrt(variance + eps) + beta",
            (
                (f"x: {section.size}", "each row is normalised by itself"),
                ("x~, and of all rows Z~ or Y~", "what the next formulas read"),
            ),
            "Paper, section 3.1; Yang 2024a, Layer Normalization; Anonymous n.d., pre-norm, as a later variant",
            ("seq2seq/model/layers.py", "Residual"),
            (
                around.vector("x, as it comes in", ".norm.in"),
                normed,
                around.vector(f"x~ = LayerNorm(x), which {what} reads", ".norm"),
            ),
        )
    yield from inside
    yield Station(
        *around.at("residual"),
        f"What {what} found is added" + when(not pre, ", then LayerNorm"),
        "The vector goes round the sub-layer unchanged, and the output is added to it: the residual connection."
        + when(not pre, " The sum gets mean 0 and variance 1, then a learned factor and a learned shift."),
        r"\mathbf{x} + \operatorname{SubLayer}(\operatorname{LayerNorm}(\mathbf{x}))"
        if pre
        else r"\operatorname{LayerNorm}(\mathbf{x} + \operatorname{SubLayer}(\mathbf{x})) \qquad" + _NORM,
        "x + SubLayer(LayerNorm(x))" if pre else "LayerNorm(x + SubLayer(x))",
        ((f"x: {section.size}", "the residual stream"),),
        "Paper, section 3.1; Yang 2024a, Add & Norm; Yang 2024b; Anonymous n.d.; Zhou n.d.",
        ("seq2seq/model/layers.py", "Residual"),
        (
            around.vector("x, as it came in", ".in"),
            section.vector(f"the output of {what}"),
            around.vector("the sum", "" if pre else ".norm.in"),
            *(() if pre else (normed, around.vector("LayerNorm of the sum"))),
        ),
    )


def feed_forward(section: Section) -> Iterator[Station]:
    """The feed-forward network."""
    config, ff, b2 = section.config, section.config.d_ff, section.config.feed_forward_output_bias
    n, D = section.length, config.d_model
    x, plain_x = section.read("x")
    linear, gate = (rf"{x}\mathbf{{W}}_{of} + \mathbf{{b}}_{of}" for of in "1g")
    plain_linear, plain_gate = (f"{plain_x} W_{of} + b_{of}" for of in "1g")
    match config.activation:
        case "relu":
            says = "ReLU sets negative numbers to 0"
            formula, plain = rf"\max(0, {linear})", f"max(0, {plain_linear})"
        case "gelu":
            says = "GELU bends negative numbers towards 0"
            formula, plain = rf"\operatorname{{GELU}}({linear})", f"GELU({plain_linear})"
        case "swiglu":
            says = "a gate, a second projection through SiLU, says how much of each number passes"
            formula = rf"\left(\operatorname{{SiLU}}({gate}) \odot ({linear})\right)"
            plain = f"(SiLU({plain_gate}) * ({plain_linear}))"
        case _:
            raise unknown("activation", config.activation)
    yield Station(
        *section.at("ff"),
        "Feed-forward: each position by itself",
        f"Each vector is widened to {ff} numbers; {says}; and a second matrix brings it back to {D}.",
        rf"\operatorname{{FFN}}({x}) = {formula}\,\mathbf{{W}}_2" + when(b2, r" + \mathbf{b}_2"),
        f"FFN({plain_x}) = {plain} W_2" + when(b2, " + b_2"),
        (
            (f"W_1: d_model × d_ff = {D} × {ff}", ""),
            (f"hidden: n × d_ff = {n} × {ff}", "after the activation"),
            (f"W_2: d_ff × d_model = {ff} × {D}", ""),
        ),
        "Paper, section 3.3; Yang 2024a, Feed-Forward Network; Yang 2024b; Anonymous n.d.; Zhou n.d.",
        ("seq2seq/model/feed_forward.py", "FeedForward"),
        (
            section.vector(plain_linear, ".linear_1"),
            *([section.vector(f"the gate {plain_gate}", ".gate")] if config.activation == "swiglu" else []),
            section.vector("after the activation", ".hidden"),
            section.vector("the output of feed-forward"),
        ),
    )
