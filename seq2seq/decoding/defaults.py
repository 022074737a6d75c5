"""A run's own search, with what the user says instead of its defaults."""

from .beam import Beam
from .config import DecodingConfig
from .greedy import Greedy


def build_search(
    defaults: DecodingConfig,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    no_repeat_ngram_size: int | None = None,
) -> Greedy | Beam:
    """The search for `n_best` hypotheses of each sentence.

    Args:
        defaults: The run's.
        beam_size: Hypotheses kept; 1 is greedy search. If not given, the run's, or `n_best` if that is more.
        length_penalty: Alpha; the run's if not given.
        n_best: How many hypotheses.
        no_repeat_ngram_size: So many pieces in a row stand at most once in an output; the run's if not given.

    Raises:
        ValueError: A value is out of range, or `n_best` exceeds the beam size given.
    """
    alpha = defaults.length_penalty if length_penalty is None else length_penalty
    size = max(defaults.beam_size, n_best) if beam_size is None else beam_size
    once = defaults.no_repeat_ngram_size if no_repeat_ngram_size is None else no_repeat_ngram_size
    return Greedy(alpha, once) if size == n_best == 1 else Beam(size, alpha, n_best, once)
