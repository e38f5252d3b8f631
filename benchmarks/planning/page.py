"""Write the comparison with CP-SAT in `docs/explanation/placement.md` from the result."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "build_table", "replace_table"]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "placement.md"
_TABLE = re.compile(r"(<!-- CP-SAT -->\n).*(<!-- end of CP-SAT -->)", re.DOTALL)
_HEAD = (
    "GPUs",
    "models",
    "pools",
    "fleets",
    "infeasible",
    "optimum proven",
    "median",
    "largest",
    "on fewest hosts: largest",
    "fleets up to 5 %",
    "one by one: median",
    "largest",
    "optimum not proven: largest over the bound",
)


def build_table(result: Mapping[str, Any]) -> str:
    """Build the table from the result of the part `cp-sat`."""
    rows = [(each["gpus"], str(each["models"]), str(each["pools"]), each) for each in result["by_size"]]
    rows += [(gpus, "all", "", each) for gpus, each in result["all"].items()]
    cells = [_HEAD, ("---", *["---:"] * (len(_HEAD) - 1)), *((*row[:3], *_list_figures(row[3])) for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def replace_table(page: str, result: Mapping[str, Any]) -> str:
    return _TABLE.sub(lambda found: f"{found[1]}{build_table(result)}{found[2]}", page)


def _list_figures(row: Mapping[str, Any]) -> tuple[str, ...]:
    ratios, alone, others = row["to_optimum"], row["one_by_one_to_optimum"], row["not_proven"]["to_bound"]
    return (
        str(row["fleets"]),
        str(row["infeasible"]),
        str(row["optimum_proven"]),
        *(_show_extra(ratios, name) for name in ("median", "largest")),
        _show_extra(row["to_optimum_on_fewest_hosts"], "largest"),
        f"{ratios['share_up_to_1.05']:.0%}".replace("%", " %") if ratios else "-",
        *(_show_extra(alone, name) for name in ("median", "largest")),
        _show_extra(others, "largest"),
    )


def _show_extra(ratios: Mapping[str, float] | None, name: str) -> str:
    """Return the extra cost in percent; a dash without a fleet."""
    return f"{100 * (ratios[name] - 1):.1f} %" if ratios else "-"
