"""Tables of a report: in a terminal, or in Markdown for a pull request."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ReportTable", "format_tables", "print_tables"]


@dataclass(frozen=True)
class ReportTable:
    """A table in any format."""

    columns: tuple[str, ...]
    figures: int
    """Number of numeric columns at the end."""
    rows: tuple[tuple[str, ...], ...]


def print_tables(tables: Iterable[ReportTable], out: "Console") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    for rows in tables:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
        for index, column in enumerate(rows.columns):
            figure = index >= len(rows.columns) - rows.figures
            table.add_column(column, justify="right" if figure else "left", no_wrap=figure, overflow="fold")
        for row in rows.rows:
            table.add_row(*map(escape, row))
        out.print()
        out.print(table)


def format_tables(tables: Iterable[ReportTable], escape: Callable[[str], str]) -> Iterator[str]:
    """Yield each table as Markdown. `escape`: what makes a text one cell."""
    for rows in tables:
        kinds = ["---"] * (len(rows.columns) - rows.figures) + ["---:"] * rows.figures
        lines = [rows.columns, kinds, *([escape(cell) for cell in row] for row in rows.rows)]
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
