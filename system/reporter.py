"""What training tells its user. The command line prints it; a program may do what it likes."""

from typing import Protocol


class Progressing(Protocol):
    """A long piece of work under way: a progress bar, or nothing."""

    def update(self, done: int, note: str = "", total: int | None = None) -> None:
        """So much is done, counted from the start; `note` says how it goes; `total` when it has become known."""
        ...

    def close(self) -> None:
        """The work is over."""
        ...


def in_words(seconds: float) -> str:
    """A duration for people, such as `40 s`, `4.5 min`, `12 min` or `3 h 20 min`."""
    if seconds < 90:
        return f"{max(round(seconds), 0)} s"
    if seconds < 600:
        return f"{seconds / 60:.1f} min"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Reporter(Protocol):
    """Takes messages and starts progress bars."""

    def say(self, text: str) -> None:
        """Something the user wants to know."""
        ...

    def warn(self, text: str) -> None:
        """Something the user should look at."""
        ...

    def progress(self, description: str, total: int | None, unit: str, done: int = 0) -> Progressing:
        """Begins a long piece of work of `total` units, `done` of them already behind us."""
        ...


class Quiet:
    """A reporter and its progress bars that say nothing."""

    def say(self, text: str) -> None:
        """Takes a message."""

    def warn(self, text: str) -> None:
        """Takes a warning."""

    def progress(self, description: str, total: int | None, unit: str, done: int = 0) -> "Quiet":
        """Begins a long piece of work."""
        del description, total, unit, done
        return self

    def update(self, done: int, note: str = "", total: int | None = None) -> None:
        """So much is done."""

    def close(self) -> None:
        """The work is over."""
