"""Tables for a person: columns that fit the terminal; elsewhere as wide as what is in them."""

import sys
from collections.abc import Container, Sequence

from ..system.reporter import visible


def print_table(
    rows: Sequence[Sequence[str]], titles: Sequence[str] | None = None, *, figures: Container[int] = ()
) -> None:
    """Prints rows of cells.

    Args:
        figures: The columns, counted from 0, that hold numbers.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=titles is not None, header_style="bold")
    for number, title in enumerate(titles or rows[0] if rows else ()):
        name = Text(title if titles else "")
        table.add_column(name, justify="right" if number in figures else "left", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 100_000, highlight=False)
    with console.capture() as held:
        console.print(table)
    print("\n".join(line.rstrip() for line in held.get().splitlines()))
