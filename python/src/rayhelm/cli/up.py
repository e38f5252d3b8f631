"""`rayhelm up`: a fleet's endpoint on this computer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rayhelm.cli.fleet_commands import FleetArgument, fleet_file
from rayhelm.cli.output import Format, FormatOption, console, shown, warn

if TYPE_CHECKING:
    from rayhelm.local.state import Endpoint, Home
    from rayhelm.render.files import Rendered
    from rayhelm.values.ray_service import RayServiceValues

__all__ = ["StateOption", "home_of", "up_command"]

StateOption = Annotated[
    Path | None,
    typer.Option("--state", help="Folder of the endpoint's state; $XDG_STATE_HOME/rayhelm when left out."),
]


def up_command(
    fleet: FleetArgument,
    service: Annotated[str | None, typer.Option("--service", help="Only this service of the fleet.")] = None,
    port: Annotated[int, typer.Option("--port", min=1024, max=65535, help="Port of the endpoint, on loopback.")] = 8000,
    gateway: Annotated[
        bool, typer.Option("--gateway/--no-gateway", help="The real gateway in front, which wants a key.")
    ] = True,
    state: StateOption = None,
    format: FormatOption = Format.text,
) -> None:
    """Serve a fleet on this computer, and return when it answers. Without a GPU, tiny models stand in."""
    from rayhelm.cli.up_door import behind_the_door, door_of
    from rayhelm.local import preflight
    from rayhelm.local.config import digest, gpus, merge, prefixes, served
    from rayhelm.local.gateway import another_key
    from rayhelm.local.serve import running, up
    from rayhelm.render.files import render_fleet

    home = home_of(state)
    rendered = render_fleet(fleet_file(fleet))
    cards = preflight.cards()
    values, notes = _values(rendered, up_services(rendered, service), home, stand_in=cards is None)
    tasks = {plan.served_as: str(plan.task) for plan in rendered.plan.models.values()}
    configs = {name: _serve_config(rendered, name, values[name]) for name in values}
    config = merge(configs, port=port)
    models, routes = served(config, tasks), prefixes(config, tasks)
    behind = behind_the_door(rendered, routes) if gateway else {}
    asked = digest({**config, "gateway": {name: model.model_dump() for name, model in behind.items()}})
    for note in notes:
        warn(note)
    if already := running(asked, home):
        _print_ready(already, another_key(home, already.url) if gateway else "", format)
        return
    preflight.check(
        home,
        port=port,
        models=len(models),
        stand_in=cards is None,
        gpus=gpus(config),
        cards=cards,
        gateway=gateway,
    )
    if rays := preflight.foreign_rays(home):
        numbers = ", ".join(str(ray.pid) for ray in rays)
        warn(f"another Ray runs here (pid {numbers}): it stays, and this one takes other ports")
    door = door_of(behind, routes, port) if gateway else None
    with shown(format) as watch:
        endpoint = up(config, models, home, stand_in=cards is None, digest=asked, door=door, watch=watch)
    _print_ready(endpoint, door.key if door else "", format)


def home_of(state: Path | None) -> "Home":
    from rayhelm.local.state import Home, default_state

    return Home((state or default_state()).absolute())


def up_services(rendered: "Rendered", wanted: str | None) -> list[str]:
    """All that one computer has use for, or the one that is wanted. Raises FleetError where there is no such one."""
    from rayhelm.errors import FleetError, Problem
    from rayhelm.spec.nearest import nearest

    known = list(rendered.values)
    if wanted is None:
        return [service for service in known if not _answers_for_others(rendered, service)]
    if wanted not in known:
        close = nearest(wanted, known) or known
        raise FleetError(Problem(f"no service `{wanted}` in this fleet", fix=f"--service {close[0]}"))
    return [wanted]


def _answers_for_others(rendered: "Rendered", service: str) -> bool:
    """It holds other places or versions of models that are served here already."""
    plans = rendered.plan.of_service(service)
    if any(plan.served_as == plan.model for plan in plans):
        return False
    names = ", ".join(dict.fromkeys(plan.served_as for plan in plans))
    warn(f"{service}: left out, it answers for {names}, served here already; `--service {service}` serves it alone")
    return True


def _values(
    rendered: "Rendered", services: list[str], home: "Home", *, stand_in: bool
) -> tuple[dict[str, "RayServiceValues"], list[str]]:
    """The fleet's values as this computer can serve them, and what is different about them."""
    from rayhelm.errors import FleetError, Problem
    from rayhelm.standin.checkpoint import write_checkpoint
    from rayhelm.standin.model import local
    from rayhelm.standin.model import stand_in as replace_by_stand_in

    if not stand_in:
        return {service: local(rendered.values[service]) for service in services}, []
    architectures = {
        service: {plan.served_as: plan.architecture for plan in rendered.plan.of_service(service)}
        for service in services
    }
    results = {
        service: replace_by_stand_in(rendered.values[service], architectures[service], home.stand_ins)
        for service in services
    }
    notes = ["no GPU is here: tiny models with random weights stand in, and their answers mean nothing"]
    notes += [note for result in results.values() for note in result.notes]
    for family in {family for result in results.values() for family in result.families}:
        write_checkpoint(family, home.stand_ins)
    served = {service: result.values for service, result in results.items() if result.values.serve.applications}
    if not served:
        raise FleetError(Problem("nothing of this can be served without a GPU", fix="\n".join(notes[1:])))
    return served, notes


def _serve_config(rendered: "Rendered", service: str, values: "RayServiceValues") -> dict[str, Any]:
    """The serveConfigV2 that the chart renders."""
    import json

    from rayhelm.charts.helm import template
    from rayhelm.render.files import CHART
    from rayhelm.values.emit import select_changed

    objects = template(
        CHART, service, rendered.namespace(service), select_changed(values), kube_version=rendered.kubernetes(service)
    )
    text = next(item["spec"]["serveConfigV2"] for item in objects if item["kind"] == "RayService")
    config: dict[str, Any] = json.loads(text)
    return config


def _print_ready(endpoint: "Endpoint", key: str, format: Format) -> None:
    """`key` is told here and nowhere else; empty without a gateway."""
    import json

    if format is Format.json:
        print(json.dumps(endpoint.model_dump(mode="json") | ({"key": key} if key else {}), indent=2))
        return
    out = console()
    out.print(f"[bold green]ready[/bold green]  {endpoint.url}{'/v1' if key else ''}")
    for model in endpoint.models:
        prefix = f"/{model.model}" if key else model.prefix
        out.print(f"  {model.model}  {endpoint.url}{prefix}/v1  ({model.task})", soft_wrap=True)
    if key:
        print(f"\nkey: {key}\n     told once: what is kept of it is a hash; `up` again makes another")
    chat = next((model for model in endpoint.models if model.task == "chat"), None)
    if chat:
        body = {"model": chat.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 32}
        url = f"{endpoint.url}{'' if key else chat.prefix}/v1/chat/completions"
        headers = (f"-H 'Authorization: Bearer {key}' " if key else "") + "-H 'Content-Type: application/json'"
        print(f"\ncurl {url} {headers} -d '{json.dumps(body)}'")
    print(f"\n{_command()} down    # ends it")


def _command() -> str:
    """This command as it can be typed here: by its path where the shell would not find it."""
    import os
    import shutil
    import sys

    called = Path(sys.argv[0])
    if shutil.which("rayhelm") or not called.is_file():
        return "rayhelm"
    return os.path.relpath(called)
