"""The gateway that `rayhelm up` puts in front of the local endpoint: the chart's, rendered for this computer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayhelm.local.gateway import Door
    from rayhelm.render.files import Rendered
    from rayhelm.values.gateway.models import Model

__all__ = ["behind_the_door", "door_of"]


def behind_the_door(rendered: "Rendered", prefixes: Mapping[str, str]) -> dict[str, "Model"]:
    """Task and paths of each model that is served here and can be called. Raises FleetError where none can."""
    from rayhelm.cli.output import warn
    from rayhelm.errors import FleetError, Problem
    from rayhelm.values.build.gateway import operations_of
    from rayhelm.values.gateway.models import Model

    found: dict[str, Model] = {}
    for name in prefixes:
        task, operations = rendered.plan.models[name].task, operations_of(name, rendered.loaded.fleet)
        if task == "custom" and not operations:
            warn(f"{name}: not behind the gateway: its `application` names no `paths`")
            continue
        found[name] = Model(task=task, operations=operations)
    if not found:
        raise FleetError(Problem("nothing of this could be called through a gateway", fix="--no-gateway"))
    return found


def door_of(models: Mapping[str, "Model"], prefixes: Mapping[str, str], port: int) -> "Door":
    """Renders the chart `gateway` for `port`, in front of a Ray Serve on a port of its own."""
    from rayhelm import processes
    from rayhelm.charts.helm import template
    from rayhelm.local.gateway import Door, local_values, new_key
    from rayhelm.values.build.gateway import RELEASE
    from rayhelm.values.emit import select_changed

    taken = {port}
    serve, metrics = processes.find_free_port(taken), processes.find_free_port(taken)
    values = select_changed(local_values(models, prefixes, (port, serve, metrics)))
    objects = template("gateway", RELEASE, RELEASE, values)
    files: dict[str, Any] = next(item["data"] for item in objects if item["kind"] == "ConfigMap")
    return Door(files, new_key(), serve=serve, metrics=metrics)
