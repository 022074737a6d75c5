"""What a shell offers to complete: `tfm --install-completion` teaches it to ask. Only what takes milliseconds."""

from collections.abc import Iterable


def run_names(incomplete: str) -> list[str]:
    """Runs in `runs/`, by their names; by their paths once `runs/` is typed."""
    from ..engine.runs.find import list_runs

    return _fitting((name for run in list_runs() for name in (run.name, str(run))), incomplete)


def presets(incomplete: str) -> list[str]:
    """The presets."""
    from ..configs.presets import PRESETS

    return _fitting((preset.name for preset in PRESETS), incomplete)


def settings(incomplete: str) -> list[str]:
    """The settings, each with its `=`."""
    from ..configs.loader import setting_names

    return _fitting((f"{name}=" for name in setting_names()), incomplete)


def metrics(incomplete: str) -> list[str]:
    """The metrics of `tfm evaluate`."""
    return _fitting(("bleu", "chrf", "ter", "exact", "wer"), incomplete)


def figures(incomplete: str) -> list[str]:
    """The figures of `tfm curves`."""
    from ..engine.runs.curves import FIGURES

    return _fitting(FIGURES, incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in set(names) if name.startswith(incomplete))
