"""The table as it is told: Markdown, out of the result, in `docs/explanation/failures.md`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "table", "with_table"]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "failures.md"
_BETWEEN = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)

HEAD = (
    "what happens",
    "workers",
    "gateways",
    "answered",
    "lost",
    "streams cut",
    "slowest",
    "switched",
    "whole again",
    "memory held",
)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of the `rows` of result.json."""
    lines = [_line(HEAD), _line(["---", *["---:"] * (len(HEAD) - 1)])]
    return "\n".join([*lines, *(_line(_cells(row)) for row in rows)]) + "\n"


def with_table(page: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The page with this table in place of its own."""
    return _BETWEEN.sub(lambda found: f"{found[1]}\n{table(rows)}\n{found[2]}", page)


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        row["what"],
        str(row["workers"]),
        str(row["doors"]),
        f"{row['answered']:,}",
        str(row["lost"]),
        str(row["cut"]),
        f"{row['slowest']:.1f} s",
        "" if row.get("switched") is None else f"{row['switched']:.0f} s",
        f"{row['seconds']:.0f} s",
        f"{row['memory_gib']:.1f} GiB",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
