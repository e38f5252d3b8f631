"""The gateway of `rayhelm up`: chart `gateway` rendered for this computer."""

from collections.abc import Mapping
from typing import Any

from rayhelm import processes
from rayhelm.cli.output import warn
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.compose.gateway import RELEASE, list_operations
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.gateway.models import Model
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.tasks import DataPath
from rayhelm.run.local.gateway import LocalGateway, build_values, create_key
from rayhelm.run.local.tracing import adapt_gateway_tracing

__all__ = ["render_gateway", "select_models"]


def select_models(rendered: Rendered, prefixes: Mapping[str, str], data_path: DataPath = "Python") -> dict[str, Model]:
    """Return task and paths of each model that the gateway can serve. Raises FleetError if there is none."""
    found: dict[str, Model] = {}
    for name in prefixes:
        fleet = rendered.plan.declared
        task, operations = rendered.plan.models[fleet.served_by(name)].task, list_operations(name, rendered.plan)
        if task == "custom" and not operations:
            warn(f"{name}: not reachable through the gateway: its `application` has no `paths`")
            continue
        aliases = list(fleet.aliases_of(name)) if name in fleet.models else []
        found[name] = Model(task=task, data_path=data_path, operations=operations, aliases=aliases)
    if not found:
        raise FleetError(
            Problem(
                "no model is reachable through the gateway: no `application` has `paths`",
                fix=Fix(command="rayhelm up ... --no-gateway"),
            )
        )
    return found


def render_gateway(
    models: Mapping[str, Model], prefixes: Mapping[str, str], port: int, traces: str = ""
) -> LocalGateway:
    """Render chart `gateway` for clients on `port` and Ray Serve on a free port. `traces` is the URL for traces."""
    taken = {port}
    serve, metrics = processes.find_free_port(taken), processes.find_free_port(taken)
    values = select_changed(adapt_gateway_tracing(build_values(models, prefixes, (port, serve, metrics)), traces))
    objects = template("gateway", RELEASE, RELEASE, values)
    files: dict[str, Any] = next(item["data"] for item in objects if item["kind"] == "ConfigMap")
    return LocalGateway(files, create_key(), serve_port=serve, metrics_port=metrics)
