"""Write the table of `docs/explanation/failures.md` from the result."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "build_table", "replace_table"]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "failures.md"
_TABLE = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)

HEAD = (
    "event",
    "workers",
    "gateways",
    "answered",
    "failed",
    "interrupted streams",
    "slowest",
    "switched after",
    "ready after",
    "memory used",
)


def build_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Build the table from the `rows` of result.json."""
    lines = [_line(HEAD), _line(["---", *["---:"] * (len(HEAD) - 1)])]
    return "\n".join([*lines, *(_line(_cells(row)) for row in rows)]) + "\n"


def replace_table(page: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Replace the table of the page."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{build_table(rows)}\n{found[2]}", page)


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        row["event"],
        str(row["workers"]),
        str(row["gateways"]),
        f"{row['answered']:,}",
        str(row["failed"]),
        str(row["interrupted"]),
        f"{row['slowest_seconds']:.1f} s",
        "" if row.get("switched_seconds") is None else f"{row['switched_seconds']:.0f} s",
        f"{row['seconds']:.0f} s",
        f"{row['memory_gib']:.1f} GiB",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
