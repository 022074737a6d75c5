"""What each preset is for, what it costs, what it yields. The settings themselves are in the YAML files beside this.

Which preset a corpus gets is decided in `engine/choose.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A preset as a user chooses it."""

    name: str
    made_for: str
    cost: str
    """Time on two CPU cores, as measured (benchmarks/quality.md) or estimated."""
    result: str
    """What came of it, on sentences never seen; see benchmarks/quality.md."""


_NOT_MEASURED = "not measured"

PRESETS = (
    Preset("toy", "the built-in toy language, English-German", "2 min", "98 % of the sentences exactly right"),
    Preset("toy-decoder", "the same, by a decoder-only model", "4 min", "95 % exactly right, or more"),
    Preset("toy-text", "a language model of its English side", "6 min", "95 % grammatical with --top-p 0.9, or more"),
    Preset("toy-encoder", "vectors of its sentences", "1 min", _NOT_MEASURED),
    Preset("pairs", "your pairs, up to 50,000", "10 to 100 min", "60 BLEU on documentation"),
    Preset("pairs-100k", "your pairs, 50,000 to 300,000", "3 to 4 h", "42 BLEU on Tatoeba after 20 minutes"),
    Preset("pairs-1m", "your pairs, 300,000 and more", "a GPU", _NOT_MEASURED),
    Preset("multi30k", "20,000 to 50,000 short sentences", "20 to 32 min", "41 BLEU, English-German"),
    Preset("multi30k-best", "the same, if you have an hour more", "50 to 90 min", "41 BLEU; 63 English-French"),
    Preset("multi30k-decoder", "the same, by a decoder-only model", "20 to 26 min", "40 BLEU, English-German"),
    Preset("multi30k-encoder", "vectors of your sentences, from pairs", "14 to 20 min", "95 % find their translation"),
    Preset("text-100k", "a language model of some 100,000 lines", "1 h", "perplexity 19 after 10 minutes of it"),
    Preset("scan", "commands to actions, whole words as pieces", "11 min", "99.9 % of SCAN exactly right"),
    Preset("g2p", "letters to phones", "up to 35 min", "73 % of unseen words exactly right"),
    Preset("base", "millions of pairs: the paper's base model", "a GPU", _NOT_MEASURED),
)
