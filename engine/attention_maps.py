"""Attention of translations: which source pieces the model looked at while it wrote each piece of the output."""

import io
from dataclasses import dataclass

import torch
from torch import Tensor

from ..data.tokenizer import BOS_ID, EOS_ID
from ..seq2seq.model.attention import attention_maps
from ..seq2seq.model.encoder_decoder import Transformer
from .translator import Translation, Translator


@dataclass(frozen=True)
class AttentionMap:
    """The attention of one translation: a row for each of T pieces of the output, a column for each of S of the source.

    `</s>` is one of both.
    """

    source: list[str]
    output: list[str]
    weights: dict[str, Tensor]
    """Module name to (H, T, S). In an encoder-decoder the rows of cross-attention, which sum to 1; in a decoder-only
    model the part of each row that falls on the source."""


@torch.inference_mode()
def attention_map(translator: Translator, text: str, translation: Translation) -> AttentionMap | None:
    """The attention of a text's translation, by the plain model; None for a blank text and one that had to be split."""
    model, tokenizer = translator.model, translator.tokenizer
    masked = tokenizer.mask(text)
    if translation.ids is None or not translation.source_ids:
        return None
    src = torch.tensor([[*translation.source_ids, EOS_ID]], device=translator.device)  # (1, S)
    tgt_in = torch.tensor([[BOS_ID, *translation.ids]], device=translator.device)  # (1, T)
    with attention_maps(model) as maps:
        model(src, tgt_in)
    across = isinstance(model, Transformer)
    rows, columns = tgt_in.size(1), src.size(1)
    return AttentionMap(
        [masked.unmask(tokenizer.src.piece(token)) for token in src[0].tolist()],
        [masked.unmask(tokenizer.tgt.piece(token)) for token in (*translation.ids, EOS_ID)],
        {
            name: weights[0][:, -rows:, :columns].float().cpu()
            for name, [weights] in maps.items()
            if not across or name.endswith(".cross_attn")
        },
    )


def heat_map(one: AttentionMap, title: str) -> bytes:
    """An SVG with a panel for each layer: the mean over its heads."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    panels = len(one.weights)
    size = 0.28 * max(len(one.source), 6), 0.28 * max(len(one.output), 4)
    picture = io.BytesIO()
    # Text stays text, in the fonts of whoever looks at it: matplotlib's own lack most scripts. The salt makes the ids
    # in the file the same each time.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tfm", "text.parse_math": False}):
        figure = Figure(figsize=(panels * (size[0] + 1.3), size[1] + 1.6), layout="constrained")
        FigureCanvasSVG(figure)
        figure.suptitle(title)
        for axes, (layer, weights) in zip(
            figure.subplots(1, panels, squeeze=False)[0], enumerate(one.weights.values()), strict=True
        ):
            axes.imshow(weights.mean(dim=0).numpy(), vmin=0, vmax=1, cmap="Greens", aspect="auto")
            axes.set_xticks(range(len(one.source)), one.source, rotation=90)
            axes.set_yticks(range(len(one.output)), one.output)
            axes.set_title(f"layer {layer + 1}")
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()
