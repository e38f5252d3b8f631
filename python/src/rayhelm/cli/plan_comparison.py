"""Tables of `rayhelm plan` that compare: two plans, and other shapes of each model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rayhelm.cli.output import Format, console

if TYPE_CHECKING:
    from rich.table import Table

    from rayhelm.planner.alternatives import Alternative
    from rayhelm.planner.plan import ModelPlan, Plan
    from rayhelm.spec.load import LoadedFleet

__all__ = ["build_alternatives_table", "build_comparison_table", "print_comparison"]


def print_comparison(loaded: "LoadedFleet", what_if: str, format: Format) -> None:
    """Plan a fleet as it is and with changes, and print both in one table."""
    import json

    from rayhelm.planner.planner import plan_fleet
    from rayhelm.planner.what_if import parse_changes, plan_changed

    changes = parse_changes(what_if, loaded)
    before, after = plan_fleet(loaded), plan_changed(loaded, changes)
    if format is Format.json:
        print(
            json.dumps(
                {
                    "what_if": what_if,
                    "before": before.model_dump(mode="json"),
                    "after": after.model_dump(mode="json"),
                    "usd_per_hour": {"before": before.price_per_hour, "after": after.price_per_hour},
                },
                indent=2,
            )
        )
        return
    console().print(build_comparison_table(before, after, what_if))
    for text in after.all_warnings:
        if text not in before.all_warnings:
            console().print(f"[yellow]warning[/yellow] with these changes: {text}", soft_wrap=True)


def build_comparison_table(before: "Plan", after: "Plan", what_if: str) -> "Table":
    """Return the models of two plans, each in two rows; in one row if nothing differs."""
    table = _build_table(f"{before.fleet} · now, and with {what_if}")
    for column in ("model", "", "pool", "GPUs", "split"):
        table.add_column(column, overflow="fold")
    for column in ("replicas", "TTFT s", "TPOT ms", "USD/h", "change"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, old in before.models.items():
        now, then = _describe(old), _describe(after.models[name])
        if now == then:
            table.add_row(name, "both", *now, "")
            continue
        table.add_row(name, "now", *now, "")
        table.add_row("", "then", *then, _difference(old.price_per_hour, after.models[name].price_per_hour))
    table.add_section()
    now_all, then_all = before.price_per_hour, after.price_per_hour
    table.add_row("all models", "now", *[""] * 6, _price(now_all), "")
    table.add_row("", "then", *[""] * 6, _price(then_all), _difference(now_all, then_all))
    return table


def build_alternatives_table(plan: "Plan", found: Mapping[str, Sequence["Alternative"]]) -> "Table":
    """Return other shapes of each model, each with its price and saving; the notes are below."""
    table = _build_table("other shapes of each model, planned alone on the GPUs that the plan leaves free")
    for column in ("model", "shape", "GPUs"):
        table.add_column(column, overflow="fold")
    for column in ("replicas", "TTFT s", "TPOT ms", "USD/h", "saving\nUSD/h"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, model in plan.models.items():
        _, gpus, _, replicas, *figures = _describe(model)
        table.add_row(name, "as planned", gpus, replicas, *figures, "")
        for each in found.get(name, ()):
            gpus = f"{each.gpus:g} x {each.gpu}" + (f" ({each.pool})" if each.pool else "")
            speed = _figure(each.ttft_s, 1), _figure(each.tpot_s, 1000)
            price = _price(each.price_per_hour), _saving(each.saving_per_hour)
            table.add_row("", each.what, gpus, str(each.replicas), *speed, *price)
    notes = dict.fromkeys(f"{each.kind}: {each.note}" for shapes in found.values() for each in shapes if each.note)
    table.caption, table.caption_justify = "\n".join(notes), "left"
    return table


def _build_table(title: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    return Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=escape(title),
        title_justify="left",
        show_edge=False,
    )


def _describe(model: "ModelPlan") -> tuple[str, ...]:
    speed = _figure(model.estimate.ttft_s, 1), _figure(model.estimate.tpot_s, 1000)
    gpus = f"{model.gpus:g} x {model.gpu}"
    return model.pool, gpus, _split(model), str(model.replicas), *speed, _price(model.price_per_hour)


def _split(model: "ModelPlan") -> str:
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
    return f"{new - old:+.2f}" + (f" ({(new - old) / old:+.0%})" if old else "")


def _figure(value: float | None, scale: float) -> str:
    if value is None:
        return "-"
    return f"{value * scale:.0f}" if value * scale >= 10 else f"{value * scale:.2g}"
