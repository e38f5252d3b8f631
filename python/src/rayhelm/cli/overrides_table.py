"""The overrides of a plan as a table."""

import json

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rayhelm.planner.plan import Plan

__all__ = ["build_overrides_table"]


def build_overrides_table(plan: Plan) -> Table:
    title = "overrides, which the planner does not know"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title=title, title_justify="left")
    for column in ("part", "chart", "key", "value"):
        table.add_column(column, overflow="fold")
    for each in plan.overrides:
        table.add_row(each.part, each.chart, Text(each.key), Text(json.dumps(each.value)))
    return table
