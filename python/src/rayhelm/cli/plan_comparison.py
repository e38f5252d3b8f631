"""Tables of `rayhelm plan` that compare: two plans, and other shapes of each model."""

import json
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from rayhelm.cli.output import NARROW, Format, console
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.alternatives import Alternative
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.what_if import parse_changes, plan_changed

__all__ = ["build_alternatives_table", "build_comparison_table", "print_comparison"]


def print_comparison(loaded: LoadedFleet, what_if: str, format: Format) -> None:
    """Plan a fleet as it is and with changes, and print both in one table."""
    changes = parse_changes(what_if, loaded)
    before, changed = plan_fleet(loaded), plan_changed(loaded, changes)
    after = changed.plan
    if format is Format.json:
        print(
            json.dumps(
                {
                    "what_if": what_if,
                    "before": before.model_dump(mode="json"),
                    "after": after.model_dump(mode="json"),
                    "usd_per_hour": {"before": before.price_per_hour, "after": after.price_per_hour},
                    "missing_nodes": [each.model_dump(mode="json") for each in changed.nodes],
                    "missing_tenant_gpus": [each.model_dump(mode="json") for each in changed.limits],
                },
                indent=2,
            )
        )
        return
    console(NARROW).print(build_comparison_table(before, after, what_if))
    for text in changed.added:
        console().print(f"[yellow]missing[/yellow] with these changes: {text}", soft_wrap=True)
    for text in after.all_warnings:
        if text not in before.all_warnings:
            console().print(f"[yellow]warning[/yellow] with these changes: {text}", soft_wrap=True)


def build_comparison_table(before: Plan, after: Plan, what_if: str) -> Table:
    """Return the models of two plans, each in two rows; in one row if nothing differs. Cells of several lines fit 80
    columns."""
    table = _build_table(f"{before.fleet} · now, and with {what_if}", "model", "GPUs\non pool, split", "USD/h\nchange")
    for name, old in before.models.items():
        if table.rows:
            table.add_row()
        new = after.models[name]
        now, then = _describe(old), _describe(new)
        if now == then:
            table.add_row(f"{name}\nboth", *now)
            continue
        *others, price = then
        change = f"{price}\n{_difference(old.price_per_hour, new.price_per_hour)}"
        table.add_row(f"{name}\nnow", *now)
        table.add_row("then", *others, change)
    table.add_section()
    now_all, then_all = before.price_per_hour, after.price_per_hour
    table.add_row("all models\nnow", *[""] * 4, _price(now_all))
    table.add_row("then", *[""] * 4, f"{_price(then_all)}\n{_difference(now_all, then_all)}")
    return table


def build_alternatives_table(plan: Plan, found: Mapping[str, Sequence[Alternative]]) -> Table:
    """Return other shapes of each model, each with its price and saving; the notes are below."""
    title = "other shapes of each model, planned alone on the GPUs that the plan leaves free"
    table = _build_table(title, "model\nshape", "GPUs\non pool", "USD/h\nsaving")
    for name, model in plan.models.items():
        _, *others = _describe(model)
        if table.rows:
            table.add_row()
        table.add_row(f"{name}\nas planned", f"{_name_gpus(model.gpus, model.gpu)}\n{model.pool}", *others)
        for each in found.get(name, ()):
            gpus = _name_gpus(each.gpus, each.gpu) + (f"\n{each.pool}" if each.pool else "")
            speed = _figure(each.ttft_s, 1), _figure(each.tpot_s, 1000)
            price = f"{_price(each.price_per_hour)}\n{_saving(each.saving_per_hour)}"
            table.add_row(Padding(escape(each.what), (0, 0, 0, 2)), gpus, str(each.replicas), *speed, price)
    notes = dict.fromkeys(f"{each.kind}: {each.note}" for shapes in found.values() for each in shapes if each.note)
    table.caption, table.caption_justify = escape("\n".join(notes)), "left"
    return table


def _build_table(title: str, first: str, second: str, last: str) -> Table:
    """Return a table without rows. Its texts fold, and its numbers stay whole."""
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=escape(title),
        title_justify="left",
        show_edge=False,
    )
    for column in (first, second):
        table.add_column(column, overflow="fold")
    for column in ("replicas", "TTFT s", "TPOT ms", last):
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _describe(model: ModelPlan) -> tuple[str, ...]:
    speed = _figure(model.estimate.ttft_s, 1), _figure(model.estimate.tpot_s, 1000)
    gpus = f"{_name_gpus(model.gpus, model.gpu)}\n{model.pool}, {_split(model)}"
    return gpus, str(model.replicas), *speed, _price(model.price_per_hour)


def _name_gpus(count: float, gpu: str) -> str:
    return f"{count:g} x {gpu}"


def _split(model: ModelPlan) -> str:
    if model.gpu_fraction < 1:
        return f"{model.gpu_fraction:g} of a GPU"
    return model.split


def _price(price: float | None) -> str:
    return "?" if price is None else f"{price:.2f}"


def _saving(saving: float | None) -> str:
    return "?" if saving is None else f"{saving:+.2f}"


def _difference(old: float | None, new: float | None) -> str:
    if old is None or new is None:
        return "?"
    if abs(new - old) < 0.005:
        return "same"
    return f"{new - old:+.2f}" + (f"\n({(new - old) / old:+.0%})" if old else "")


def _figure(value: float | None, scale: float) -> str:
    if value is None:
        return "-"
    return f"{value * scale:.0f}" if value * scale >= 10 else f"{value * scale:.2g}"
