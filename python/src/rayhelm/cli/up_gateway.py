"""The gateway of `rayhelm up`: chart `gateway` rendered for this computer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayhelm.deploy.render.files import Rendered
    from rayhelm.deploy.values.gateway.models import Model
    from rayhelm.run.local.gateway import LocalGateway

__all__ = ["render_gateway", "select_models"]


def select_models(rendered: "Rendered", prefixes: Mapping[str, str]) -> dict[str, "Model"]:
    """Return task and paths of each model that the gateway can serve. Raises FleetError if there is none."""
    from rayhelm.cli.output import warn
    from rayhelm.deploy.compose.gateway import list_operations
    from rayhelm.deploy.values.gateway.models import Model
    from rayhelm.errors import Fix, FleetError, Problem

    found: dict[str, Model] = {}
    for name in prefixes:
        fleet = rendered.loaded.fleet
        task, operations = rendered.plan.models[fleet.served_by(name)].task, list_operations(name, fleet)
        if task == "custom" and not operations:
            warn(f"{name}: not reachable through the gateway: its `application` has no `paths`")
            continue
        aliases = list(fleet.aliases_of(name)) if name in fleet.models else []
        found[name] = Model(task=task, operations=operations, aliases=aliases)
    if not found:
        raise FleetError(
            Problem(
                "no model is reachable through the gateway: no `application` has `paths`",
                fix=Fix(command="rayhelm up ... --no-gateway"),
            )
        )
    return found


def render_gateway(
    models: Mapping[str, "Model"], prefixes: Mapping[str, str], port: int, traces: str = ""
) -> "LocalGateway":
    """Render chart `gateway` for clients on `port` and Ray Serve on a free port. `traces` is the URL for traces."""
    from rayhelm import processes
    from rayhelm.deploy.charts.helm import template
    from rayhelm.deploy.compose.gateway import RELEASE
    from rayhelm.deploy.values.emit import select_changed
    from rayhelm.run.local.gateway import LocalGateway, build_values, create_key
    from rayhelm.run.local.tracing import adapt_gateway_tracing

    taken = {port}
    serve, metrics = processes.find_free_port(taken), processes.find_free_port(taken)
    values = select_changed(adapt_gateway_tracing(build_values(models, prefixes, (port, serve, metrics)), traces))
    objects = template("gateway", RELEASE, RELEASE, values)
    files: dict[str, Any] = next(item["data"] for item in objects if item["kind"] == "ConfigMap")
    return LocalGateway(files, create_key(), serve_port=serve, metrics_port=metrics)
