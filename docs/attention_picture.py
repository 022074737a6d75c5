"""Draws docs/attention.svg: a sentence, its translation, and lines for where the model looked.

    tfm translate --run runs/toy --attention attention.jsonl "the old woman gives the child two red apples"
    python docs/attention_picture.py attention.jsonl docs/attention.svg

Weights are the mean over all layers and heads of cross-attention. What is below a twentieth is
left out.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tfm.system.files import replace_file

LETTER, GAP, HEIGHT = 9.2, 24, 190
STYLE = """
  text { font: 17px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; }
  .note { font-size: 13px; fill: #59636e; }
  line { stroke: #0969da; stroke-linecap: round; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .note { fill: #9198a1; } line { stroke: #4493f8; }
  }
"""


def words(pieces: list[str]) -> list[tuple[str, list[int]]]:
    """The words of a text, each with the numbers of its pieces. The end of the sentence is none."""
    found: list[tuple[str, list[int]]] = []
    for number, piece in enumerate(pieces):
        if piece.startswith("▁") or not found:
            found.append((piece.removeprefix("▁"), [number]))
        elif not piece.startswith("<"):
            found[-1] = (found[-1][0] + piece, [*found[-1][1], number])
    return found


def centres(texts: list[str], width: float) -> list[float]:
    """Where the middle of each word stands in a line of this width."""
    sizes = [LETTER * len(text) for text in texts]
    at = (width - sum(sizes) - GAP * (len(texts) - 1)) / 2
    middles: list[float] = []
    for size in sizes:
        middles.append(at + size / 2)
        at += size + GAP
    return middles


def picture(record: dict[str, Any]) -> str:
    """The SVG of one line that `tfm translate --attention` wrote."""
    source, output = words(record["source"]), words(record["output"])
    maps = [head for heads in record["attention"].values() for head in heads]  # each (T, S)
    texts = [[text for text, _ in line] for line in (source, output)]
    width = max(LETTER * sum(map(len, line)) + GAP * (len(line) - 1) for line in texts) + 2 * GAP
    above, below = (centres(line, width) for line in texts)
    lines: list[str] = []
    for y, (_, rows) in zip(below, output, strict=True):
        for x, (_, columns) in zip(above, source, strict=True):
            weight = sum(one[t][s] for one in maps for t in rows for s in columns) / len(maps) / len(rows)
            if weight >= 0.05:
                shape = f'stroke-width="{1 + 5 * weight:.1f}" opacity="{min(1, 0.15 + weight):.2f}"'
                lines.append(f'<line x1="{x:.0f}" y1="48" x2="{y:.0f}" y2="{HEIGHT - 48}" {shape}/>')
    for middles, line, height in ((above, texts[0], 36), (below, texts[1], HEIGHT - 26)):
        for x, text in zip(middles, line, strict=True):
            lines.append(f'<text x="{x:.0f}" y="{height}" text-anchor="middle">{text}</text>')
    title = f"{' '.join(texts[0])}: {' '.join(texts[1])}"
    size = f'viewBox="0 0 {width:.0f} {HEIGHT}" width="{width:.0f}" height="{HEIGHT}"'
    body = "\n".join(lines)
    style = f"<title>{title}</title>\n<style>{STYLE}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{style}\n{body}\n</svg>\n'


if __name__ == "__main__":
    attention, svg = map(Path, sys.argv[1:])
    record = json.loads(attention.read_text(encoding="utf-8").splitlines()[0])
    replace_file(svg, picture(record).encode())
