"""Write the table of `docs/explanation/failures.md`, and the figures that `rayhelm diff` shows, from the result."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["FIGURES", "PAGE", "build_table", "replace_figures", "replace_table"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "failures.md"
FIGURES = ROOT / "python/src/rayhelm/data/kuberay/failures.yaml"
_FIGURE = re.compile(r"\b(answered|failed|slowest_seconds): [\d.]+")
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


def replace_figures(text: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Replace the figures of each row that is in `text`."""
    measured = {row["name"]: row for row in rows}

    def replace_line(line: str) -> str:
        row = measured.get(line.partition(": {")[0])
        return _FIGURE.sub(lambda found: f"{found[1]}: {row[found[1]]}", line) if row else line

    return "".join(map(replace_line, text.splitlines(keepends=True)))


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
