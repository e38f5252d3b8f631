"""Write a plan as a page for a browser, beside the plan of a changed fleet. It needs no script and no network."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from rayhelm.deploy.control_characters import escape_controls
from rayhelm.deploy.render.fleet_map import draw_fleet_map
from rayhelm.planner.added_capacity import ChangedPlan
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["Field", "build_plan_view"]


@dataclass(frozen=True)
class Field:
    """A field of the page's form."""

    name: str
    """Key of a change: `chat.traffic`."""
    part: str
    """Model or pool."""
    what: str
    value: str
    example: str


def build_plan_view(
    now: Plan,
    changed: ChangedPlan | None = None,
    fields: Sequence[Field] = (),
    changes: str = "",
    problems: Sequence[str] = (),
) -> str:
    """Return the page. `changed` is the plan with `changes`; `problems` say why there is none. Without `fields` it
    has no form."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def finalize(value: object) -> object:
        """Show control characters: one can turn the order of words around."""
        return escape_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True, finalize=finalize
    )
    template = files("rayhelm").joinpath("data/templates/plan-view.html.j2").read_text(encoding="utf-8")
    then = changed.plan if changed else None
    shown = then or now
    return environment.from_string(template).render(
        plan=shown,
        map=Markup(draw_fleet_map(shown)),
        rows=list(_list_rows(now, then)),
        prices=(_format_price(now.price_per_hour), _format_price(shown.price_per_hour)),
        changes=changes,
        problems=problems,
        warnings=[*changed.added, *_list_new(shown.all_warnings, now.all_warnings)] if changed else now.all_warnings,
        form=_group_by_part(fields),
    )


def _list_rows(now: Plan, then: Plan | None) -> Iterator[dict[str, object]]:
    """Yield a row for each model, with its figures before a change if they differ."""
    for name, model in (then or now).models.items():
        cells, before = _describe(model), _describe(now.models[name])
        yield {
            "name": name,
            "cells": [(cell, old if cell != old else "") for cell, old in zip(cells, before, strict=True)],
            "reasons": list(model.reasons),
        }


def _describe(model: ModelPlan) -> tuple[str, ...]:
    share = f"{model.gpu_fraction:g} of a GPU" if model.gpu_fraction < 1 else model.split
    estimate = model.estimate
    return (
        f"{model.gpus:g} x {model.gpu}",
        share,
        str(model.replicas),
        str(model.max_model_len),
        _format_interval(estimate.ttft_s, estimate.ttft_interval_s),
        _format_interval(estimate.tpot_s, estimate.tpot_interval_s)
        + (f" with {estimate.tpot_concurrency} in flight" if estimate.tpot_concurrency else ""),
        _format_price(model.price_per_hour),
    )


def _format_interval(seconds: float | None, interval: tuple[float, float] | None) -> str:
    if seconds is None:
        return "-"
    low, high = (f"{each * 1000:.3g}" for each in interval or (seconds, seconds))
    return f"{seconds * 1000:.3g} ms ({low} to {high})" if interval else f"{seconds * 1000:.3g} ms"


def _format_price(price: float | None) -> str:
    return "unknown" if price is None else f"{price:.2f} USD/h"


def _list_new(warnings: Sequence[str], earlier: Sequence[str]) -> list[str]:
    return [text for text in warnings if text not in earlier]


def _group_by_part(fields: Sequence[Field]) -> Mapping[str, list[Field]]:
    found: dict[str, list[Field]] = {}
    for field in fields:
        found.setdefault(field.part, []).append(field)
    return found
