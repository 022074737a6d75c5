"""The stations of the walk through a model. One record per architecture has everything that is special about it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ...seq2seq.model.config import Architecture, ModelConfig
from .stations import Axis, Section, Station, View, embedding, feed_forward, projections, self_attention, sublayer, when


@dataclass(frozen=True)
class Maps:
    """The attention whose maps are shown for all layers, heads and checkpoints: from rows to columns."""

    module: str
    rows: Axis
    columns: Axis

    @property
    def across(self) -> bool:
        """Whether it is cross-attention."""
        return self.rows != self.columns


@dataclass(frozen=True)
class Walk:
    """The walk through one architecture: through one stack in every detail, and then the rest."""

    model: tuple[str, str]  # file and class
    pieces: str  # how the text becomes pieces, in words
    axis: Axis  # the positions of the stack
    embedding: str  # the name of its module
    stack: str  # the same
    parts: tuple[str, str, str]  # the embedding, a layer and the stack, in words
    maps: Maps
    rest: "Callable[[Sizes], Iterable[Station]]"


@dataclass(frozen=True)
class Sizes:
    """The stations depend on these: the configuration, the lengths of the axes, the pieces of the vocabulary."""

    config: ModelConfig
    lengths: Mapping[str, int | str]
    vocabulary: int
    has_checkpoints: bool = False
    """The run's other checkpoints are shown, too."""
    continues: bool = False
    """There is no source: a text alone is continued."""

    @property
    def walk(self) -> Walk:
        """The record of the architecture."""
        walk = WALKS[self.config.architecture]
        return replace(walk, pieces=_CONTINUED) if self.continues else walk

    def section(self, part: str, axis: Axis, module: str) -> Section:
        """A module on the walk."""
        return Section(self.config, self.lengths[axis], part, axis, module)

    def layers(self, module: str) -> int:
        """The number of layers of the stack that a module is in."""
        return self.config.num_encoder_layers if module.startswith("encoder") else self.config.num_decoder_layers


def stations(sizes: Sizes) -> list[Station]:
    """The whole walk through a model, in the order in which it computes."""
    walk = sizes.walk
    modules = zip(walk.parts, (walk.embedding, f"{walk.stack}.layers.{{layer}}", walk.stack), strict=True)
    first, layer, stack = (sizes.section(part, walk.axis, module) for part, module in modules)
    attention = layer.to(".self_attn")
    return [
        Station(
            "pieces",
            "The text",
            "Text to pieces",
            walk.pieces,
            sources="Paper, section 5.1; Yang 2024a, Input Embeddings",
            code=("data/tokenizer.py", "Vocabulary.encode"),
            views=(View("pieces"),),
        ),
        *embedding(first),
        *sublayer(attention, "attention", self_attention(attention, causal=walk.stack == "decoder")),
        *_feed_forward(layer),
        _stack(stack, sizes.layers(walk.stack), "Encoder"),
        *walk.rest(sizes),
    ]


def live_stations(sizes: Sizes) -> Iterator[Station]:
    """What only a page that computes can show: experiments of the reader's own."""
    writes, part = sizes.config.architecture != "encoder_only", "Experiments of your own"
    yield Station(
        "left-out",
        part,
        "Why this word?" if writes else "Which pieces matter?",
        "Each piece of the text is left out in turn, and the model reads the rest."
        + (
            " Where the piece that was written becomes less probable, the piece that is missing spoke for it; where it"
            " becomes more probable, the missing piece spoke against it."
            if writes
            else " The farther the vector turns away from that of the whole text, the more the piece matters."
        ),
        r"\Delta_{it} = \log P(y_t \mid y_{<t}, x_{-i}) - \log P(y_t \mid y_{<t}, x)"
        if writes
        else r"\cos(\mathbf{s}, \mathbf{s}_{-i}) = \mathbf{s} \cdot \mathbf{s}_{-i}",
        "",
        views=(View("left_out"),),
    )
    yield Station(
        "switches",
        part,
        "Switch heads off, and look at everything again",
        "A head that is off gives zeros. Press one: the whole page is computed again without it. Press it again, and it"
        " is back. Several can be off at once.",
        code=("engine/explain/probes.py", "head_off"),
        views=(View("switches"),),
    )
    stack = "encoder" if sizes.config.num_encoder_layers else "decoder"
    yield Station(
        "patch",
        part,
        "Put a hidden state of another sentence in its place",
        f"The {stack} reads another sentence. What one of its layers has written for one piece takes the place of what"
        " it wrote for a piece of this sentence; all that comes after is computed again. If the output changes, that"
        " state carried what changed.",
        r"\mathbf{z}^{(l)}_i \leftarrow \mathbf{z}'^{(l)}_j",
        "",
        views=(View("patch"),),
    )


def _feed_forward(layer: Section) -> Iterator[Station]:
    inner = layer.to(".feed_forward")
    return sublayer(inner, "feed-forward", feed_forward(inner))


def _stack(stack: Section, layers: int, class_: str) -> Station:
    pre = stack.config.norm_order == "pre"
    output = ".layers.{}.feed_forward_residual"
    return Station(
        *stack.at("stack"),
        f"{layers} layers on top of each other" if layers > 1 else "One layer",
        "Each layer reads what the last one wrote; each has its own weights."
        + when(pre, " One more LayerNorm ends the stack."),
        r"\mathbf{Z}^{(l)} = \operatorname{Layer}_l(\mathbf{Z}^{(l-1)}), \quad l = 1 \ldots " + str(layers),
        f"Z^(l) = Layer_l(Z^(l-1)), l = 1 .. {layers}",
        ((f"Z: {stack.size}", "the same after every layer"),),
        "Paper, section 3.1; Yang 2024a, Encoder Block; Yang 2024b; Zhou n.d., Encoder",
        ("seq2seq/model/stacks.py", class_),
        (
            stack.vector("the chosen piece after each layer", output.format("{layer}"), kind="layers"),
            stack.vector("the output of the stack", ".norm" if pre else output.format(layers - 1)),
        ),
    )


def _decoder(sizes: Sizes) -> Iterator[Station]:
    """The second stack of an encoder-decoder, in fewer stations: only masks and cross-attention are new."""
    yield from embedding(sizes.section("Target embedding", "tgt", "tgt_embedding"))
    layer = sizes.section("Decoder layer", "tgt", "decoder.layers.{layer}")
    own, cross = layer.to(".self_attn"), layer.to(".cross_attn")
    shown = (
        replace(one, title=f"Masked self-attention: {one.title[0].lower()}{one.title[1:]}")
        for one in self_attention(own, causal=True)
        if one.id.endswith(("-rotary", "-mask", "-weights", "-out"))
    )
    yield from sublayer(own, "self-attention", shown)
    yield from sublayer(cross, "cross-attention", _cross_attention(cross, sizes))
    yield from _feed_forward(layer)
    yield _stack(sizes.section("Decoder", "tgt", "decoder"), sizes.layers("decoder"), "Decoder")
    yield from _output(sizes)


def _cross_attention(cross: Section, sizes: Sizes) -> Iterator[Station]:
    """From m target positions to n source positions."""
    m, n, dk = cross.length, sizes.lengths["src"], cross.config.key_size
    memory, source = (r"\mathbf{M}", "M"), replace(cross, axis="src")
    yield Station(
        *cross.at("qkv"),
        "Cross-attention: queries of the target, keys and values of the source",
        "This is where the two sentences meet. The queries come from the target, Y. Keys and values come from M, the"
        " encoder's output, which is the same for all decoder layers.",
        *projections((cross.read("Y"), memory, memory), r" \qquad ", bias=cross.config.attention_bias),
        (
            (f"Q: m × d_k = {m} × {dk}", "one query for each target position"),
            (f"K, V: n × d_k = {n} × {dk}", "one key and one value for each source position"),
        ),
        "Paper, section 3.2.3; Yang 2024a, Decoder Block; Yang 2024b; Anonymous n.d.; Zhou n.d., Decoder",
        ("seq2seq/model/layers.py", "DecoderLayer"),
        (
            cross.vector("the query of this step", ".q", by_head=True),
            source.vector("the key of the chosen source piece", ".k", by_head=True),
            source.vector("the value of the chosen source piece", ".v", by_head=True),
        ),
    )
    yield Station(
        *cross.at("weights"),
        "Cross-attention: where each step looks",
        "Rows are steps of the output, columns are pieces of the source. Each row adds up to 1.",
        r"\mathbf{A} = \operatorname{softmax}\left(\frac{\mathbf{Q}\mathbf{K}^T}{\sqrt{d_k}}\right)",
        "A = softmax(Q K^T / sqrt(d_k))",
        ((f"A: m × n = {m} × {n}", "shares of the source for each step"),),
        "Paper, section 3.2.3; Yang 2024a, Decoder Block; Yang 2024b; Zhou n.d., Decoder",
        ("seq2seq/model/attention.py", "attention"),
        (
            cross.map("Q K^T / sqrt(d_k)", ".scores", "src"),
            cross.map("A, the weights", ".weights", "src"),
            cross.map("the two sentences", ".weights", "src", "lines"),
            cross.map("shares of this step", ".weights", "src", "weighted"),
            cross.vector("their sum of values", ".heads", by_head=True),
            cross.vector("the output of cross-attention"),
        ),
    )
    yield _all_attention(sizes)


def _all_attention(sizes: Sizes) -> Station:
    """The grid of all layers and heads."""
    maps = sizes.walk.maps
    return Station(
        "all-heads",
        "Decoder layer" if maps.across else "Stack",
        f"All layers and heads of {'cross-attention' if maps.across else 'attention'}",
        "Each square is one head. Rows are what looks, columns what is looked at.",
        sources="Paper, appendix, figures 3 to 5",
        code=("seq2seq/model/attention.py", "recording"),
        views=(View("grid", "", f"{maps.module}.weights", maps.rows, maps.columns, by_head=True),),
    )


def _sentence(sizes: Sizes) -> Iterator[Station]:
    """The rest of an encoder-only model."""
    yield Station(
        "vector",
        "The sentence",
        "One vector for the whole sentence",
        "The vectors of all pieces are averaged, and the average is scaled to length 1. Two sentences of one meaning"
        " should have vectors of one direction: the sum of the products of their elements is then near 1.",
        r"\mathbf{m} = \frac{1}{n} \sum_{i=1}^{n} \mathbf{z}_i \qquad"
        r" \mathbf{s} = \frac{\mathbf{m}}{\lVert \mathbf{m} \rVert}",
        "m = mean of z_1 .. z_n;  s = m / |m|",
        ((f"m, s: {sizes.config.d_model}", "the average, and the vector of the sentence"),),
        code=("seq2seq/model/encoder_only.py", "EncoderOnly.embed"),
        views=(View("vector", "the average m", "sentence.mean"), View("vector", "the sentence s", "sentence.vector")),
    )
    yield _all_attention(sizes)


def _output(sizes: Sizes) -> Iterator[Station]:
    """From the last vectors to a text; and experiments."""
    config, V, walk = sizes.config, sizes.vocabulary, sizes.walk
    pre, bias = config.norm_order == "pre", config.output_bias
    yield Station(
        "logits",
        "Output",
        "A number for each piece of the vocabulary",
        "The vector of the step is multiplied with the output layer's vector of every piece: the larger the"
        " product, the better the piece fits."
        + when(config.tie_embeddings, " This matrix is the embedding E itself, used a second time."),
        r"\mathbf{l} = \mathbf{y}\mathbf{W}" + when(bias, r" + \mathbf{b}"),
        "l = y W" + when(bias, " + b"),
        ((f"l: m × |V| = {sizes.lengths['tgt']} × {V:,}", "logits, one row for each step"),),
        "Paper, section 3.4; Yang 2024a, Decoder-Only Transformer; Yang 2024b, Decoder-Only Transformer; Anonymous n.d."
        "; Zhou n.d., without b",
        walk.model,
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
        "Paper, section 3.4; Yang 2024a; Yang 2024b; Anonymous n.d.; Zhou n.d., Decoder",
        ("seq2seq/decoding/sampling.py", "restricted_distribution"),
        (View("candidates", "probabilities"),),
    )
    yield Station(
        "early",
        "Output",
        "What each layer would have said",
        "Each layer's vector is sent through the output layer as if the layer were the last one. The answer takes shape"
        " from layer to layer.",
        r"\operatorname{softmax}("
        + (r"\operatorname{LayerNorm}(\mathbf{y}^{(l)})" if pre else r"\mathbf{y}^{(l)}")
        + r"\,\mathbf{W}"
        + (r" + \mathbf{b})" if bias else ")"),
        f"softmax({'LayerNorm(y^(l))' if pre else 'y^(l)'} W" + (" + b)" if bias else ")"),
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
        "Paper, section 6.1; Wu 2016, equation 14; Zhou n.d., the likeliest; Yang 2024a, drawn",
        ("seq2seq/decoding/beam.py", "Beam"),
        (View("choice"),),
    )
    yield from _experiments(sizes)


def _experiments(sizes: Sizes) -> Iterator[Station]:
    """What becomes of the output without a head, and what it was at earlier checkpoints."""
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
            views=(View("checkpoints", "", "", sizes.walk.maps.rows, sizes.walk.maps.columns, by_head=True),),
        )


WALKS: dict[Architecture, Walk] = {
    "encoder_decoder": Walk(
        model=("seq2seq/model/encoder_decoder.py", "Transformer"),
        pieces="Both texts become pieces of a fixed vocabulary, each with a number. </s> ends the source. <s> begins"
        " what the decoder reads: at each step, all that it has written so far.",
        axis="src",
        embedding="src_embedding",
        stack="encoder",
        parts=("Source embedding", "Encoder layer", "Encoder"),
        maps=Maps("decoder.layers.{layer}.cross_attn", "tgt", "src"),
        rest=_decoder,
    ),
    "decoder_only": Walk(
        model=("seq2seq/model/decoder_only.py", "DecoderOnly"),
        pieces="Source and target become one sequence of pieces, each with a number: the source, </s>, <s>, the"
        " target.",
        axis="seq",
        embedding="embedding",
        stack="decoder",
        parts=("Embedding", "Layer", "Stack"),
        maps=Maps("decoder.layers.{layer}.self_attn", "seq", "seq"),
        rest=lambda sizes: (_all_attention(sizes), *_output(sizes)),
    ),
    "encoder_only": Walk(
        model=("seq2seq/model/encoder_only.py", "EncoderOnly"),
        pieces="The text becomes pieces of a fixed vocabulary, each with a number. </s> ends it.",
        axis="src",
        embedding="embedding",
        stack="encoder",
        parts=("Embedding", "Layer", "Stack"),
        maps=Maps("encoder.layers.{layer}.self_attn", "src", "src"),
        rest=_sentence,
    ),
}
_CONTINUED = "The text becomes pieces of a fixed vocabulary, each with a number. <s> begins it; the model continues it."
"""The pieces of a language model."""
