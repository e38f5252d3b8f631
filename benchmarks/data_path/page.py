"""Write the table of `docs/tasks/choose-the-data-path.md` from the result."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_path.paths import ALONE, PATHS

__all__ = ["PAGE", "build_table", "replace_table"]

PAGE = Path(__file__).parents[2] / "docs" / "tasks" / "choose-the-data-path.md"
_TABLE = re.compile(r"(<!-- measured -->\n).*(<!-- end of measured -->)", re.DOTALL)
_HEAD = ("streams", "server", "tokens/s", "median time to first token", "CPU per token outside the engine")


def build_table(result: Mapping[str, Any]) -> str:
    """Build the sentence and the table of a result."""
    lines = [_join(_HEAD), _join(["---:", "---", *["---:"] * 3])]
    for row in result["rows"]:
        for name in (*PATHS, ALONE):
            found = row[name]
            figures = (
                f"{found['tokens_per_second']:,.0f}",
                f"{found['first_token_s'] * 1000:,.0f} ms",
                f"{found['cpu_microseconds_per_token']:,.0f} µs",
            )
            lines.append(_join([str(row["streams"]), name if name == ALONE else f"`{name}`", *figures]))
    text = (
        f"Measured {result['measured']} on {result['cores']} cores with Ray {result['ray']} and vLLM {result['vllm']},"
        f" a tiny Llama on CPU,\nwithout a gateway: streams of {result['tokens_per_stream']} tokens, medians of"
        f" {result['rounds']} rounds ([figures](../../benchmarks/data_path/result.json))."
    )
    return "\n".join(["", text, "", *lines, ""]) + "\n"


def replace_table(page: str, result: Mapping[str, Any]) -> str:
    """Replace the table of the page."""
    return _TABLE.sub(lambda found: f"{found[1]}{build_table(result)}{found[2]}", page)


def _join(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
