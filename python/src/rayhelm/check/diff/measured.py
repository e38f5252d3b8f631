"""Which part of a change has its cause in measurements of `rayhelm probe` or `rayhelm bench`."""

from collections.abc import Iterator

from rayhelm.check.diff.side import Side
from rayhelm.errors import collect
from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.planner.plan_changes import list_network_changes, list_shape_changes, plan_measured

__all__ = ["explain_measurements"]


def explain_measurements(old: Side, new: Side) -> Iterator[str]:
    """Yield the changed measurements, and the models that are planned otherwise because of them.

    The new fleet is planned with the measurements of the old one: what differs then has no other cause."""
    if not (old.rendered and new.rendered):
        return
    before, after = old.rendered.plan.source.measured, new.rendered.plan.source.measured
    if _list_figures(before) == _list_figures(after):
        return
    plan = new.rendered.plan
    networks = "; ".join(list_network_changes(old.rendered.plan, plan))
    cause = f"measurements changed: {networks}" if networks else "measurements changed, and no network of a pool"
    planned, problems = collect(lambda: plan_measured(plan, before))
    if not planned:
        yield f"{cause}. Because of them, without these measurements the fleet has no plan ({problems[0].message})"
        return
    changes = list(list_shape_changes(planned, plan))
    if not changes:
        yield f"{cause}. No model is placed, split or scaled otherwise because of them"
    for change in changes:
        yield f"{cause}. Because of them, {change}"


def _list_figures(measured: FleetMeasurements | None) -> object:
    """Return the figures, which are the same wherever they were read."""
    return (measured.pools, measured.models) if measured else ({}, {})
