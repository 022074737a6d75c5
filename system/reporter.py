"""What tfm tells its user: messages and progress. `Console` prints them on stderr; a program may do what it likes."""

import contextlib
import os
import sys
import time
from typing import IO, Any, Protocol


def say_nothing(text: str) -> None:
    """Hears a sentence and keeps it. Unlike a lambda it can be pickled, and a translator with it."""


class Progressing(Protocol):
    """A long piece of work under way: a progress bar, or nothing."""

    def update(self, done: int, note: str = "", total: int | None = None) -> None:
        """`done` is counted from the start; `note` says how it goes; `total` is given when it has become known."""

    def close(self) -> None:
        """The work is over."""


def in_words(seconds: float) -> str:
    """A duration for people, such as `40 s`, `4.5 min`, `12 min` or `3 h 20 min`."""
    if seconds < 90:
        return f"{max(round(seconds), 0)} s"
    if seconds < 600:
        return f"{seconds / 60:.1f} min"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def counted(number: int, noun: str, plural: str = "") -> str:
    """How many there are, such as `1 line` or `2,000 lines`; the plural is that with an s if it is not given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def shortened(text: str, longest: int) -> str:
    """The beginning of a text that has more characters than that, with two dots for the rest."""
    return text if len(text) <= longest else f"{text[: longest - 2]}.."


class Reporter(Protocol):
    """Takes messages and starts progress bars."""

    def say(self, text: str) -> None:
        """Something the user wants to know."""

    def warn(self, text: str) -> None:
        """Something the user should look at."""

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
        """Takes how much is done."""

    def close(self) -> None:
        """The work is over."""


_PLAIN_INTERVAL = 30.0
"""Seconds between two lines of progress where stderr is not a terminal."""


def visible(text: str) -> str:
    """A text as a terminal may show it: whatever could move its cursor or change its colours is spelt out."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


_COLOURS = {"bold": 1, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}


def painted(text: str, colour: str, stream: "IO[str] | None" = None) -> str:
    """A text in a colour, if it goes to a terminal that has colours, and nobody has said `NO_COLOR`.

    Args:
        stream: Where it goes; standard output if not given.
    """
    stream = stream or sys.stdout
    coloured = (
        stream is not None
        and stream.isatty()
        and os.environ.get("TERM", "dumb") != "dumb"
        and not os.environ.get("NO_COLOR")
    )
    return f"\33[{_COLOURS[colour]}m{text}\33[0m" if coloured else text


class Bar:
    """Progress of one long piece of work: a tqdm bar on a terminal, now and then a line elsewhere."""

    def __init__(self, console: "Console", description: str, total: int | None, unit: str, done: int) -> None:
        self._console = console
        self._description, self._total, self._unit = description, total, unit
        self._began, self._done_before = time.monotonic(), done
        self._last_line = self._began
        self._tqdm: Any = None
        if console.terminal:
            from tqdm import tqdm

            self._tqdm = tqdm(total=total, desc=description, unit=unit, initial=done, file=sys.stderr, leave=False)

    def update(self, done: int, note: str = "", total: int | None = None) -> None:
        """Shows how much is done, counted from the start."""
        self._total = total or self._total
        if self._tqdm is not None:
            self._tqdm.total = self._total
            if note:
                self._tqdm.set_postfix_str(note, refresh=False)
            self._tqdm.update(done - self._tqdm.n)
        elif time.monotonic() - self._last_line > _PLAIN_INTERVAL:
            self._last_line = time.monotonic()
            of = f" of {self._total:,}" if self._total else ""
            notes = "".join(f", {one}" for one in (note, self._time_left(done)) if one)
            self._console.say(f"{self._description}: {self._unit} {done:,}{of}{notes}")

    def _time_left(self, done: int) -> str:
        """What the rest takes at the speed so far, in words."""
        newly_done = done - self._done_before
        if not self._total or newly_done <= 0:
            return ""
        seconds = (self._total - done) * (time.monotonic() - self._began) / newly_done
        return f"{in_words(seconds)} left"

    def close(self) -> None:
        """The work is over."""
        if self._tqdm is not None:
            self._tqdm.close()


class Console:
    """Prints for a person; the `Reporter` of training."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()

    def say(self, text: str) -> None:
        """A message, above any progress bar.

        That nobody can read it any more, because the terminal or what reads the pipe is gone, is no reason to fail.
        """
        self._print(visible(text))

    def _print(self, text: str) -> None:
        with contextlib.suppress(OSError):
            if self.terminal:
                from tqdm import tqdm

                tqdm.write(text, file=sys.stderr)
            else:
                print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """A message worth a second look."""
        self._print(f"{painted('tfm: warning:', 'yellow', sys.stderr)} {visible(text)}")

    def progress(self, description: str, total: int | None, unit: str, done: int = 0) -> Bar:
        """Begins a long piece of work."""
        return Bar(self, description, total, unit, done)
