"""Which part of a change has its cause in measurements of `rayhelm probe` or `rayhelm bench`."""

from collections.abc import Iterator

from rayhelm.check.diff.side import Side
from rayhelm.errors import attempt
from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.planner.plan_changes import list_measured_changes, list_network_changes

__all__ = ["explain_measurements"]


def explain_measurements(old: Side, new: Side) -> Iterator[str]:
    """Yield the changed measurements, and the models that are planned otherwise because of them.

    The new fleet is planned with the measurements of the old one: what differs then has no other cause."""
    if not (old.rendered and new.rendered):
        return
    before, after = old.rendered.loaded.measured, new.rendered.loaded.measured
    if _list_figures(before) == _list_figures(after):
        return
    networks = "; ".join(list_network_changes(old.rendered.plan, new.rendered.plan))
    cause = f"measurements changed: {networks}" if networks else "measurements changed, and no network of a pool"
    planned = new.rendered.loaded
    changes = attempt(lambda: list(list_measured_changes(planned, before, after)))
    if changes is None:  # no plan with the measurements of the old fleet
        return
    if not changes:
        yield f"{cause}. No model is placed, split or scaled otherwise because of them"
    for change in changes:
        yield f"{cause}. Because of them, {change}"


def _list_figures(measured: FleetMeasurements | None) -> object:
    """Return the figures, which are the same wherever they were read."""
    return (measured.pools, measured.models) if measured else ({}, {})
