"""`rayhelm up`: serve a fleet on this computer."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rayhelm.cli.output import FleetArgument, Format, FormatOption, console, show_progress, warn
from rayhelm.cli.up_gateway import render_gateway, select_models
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import CHART, Rendered, render_fleet
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError, Problem, UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.observe.rules.files import build_recording_files
from rayhelm.run.local import preflight
from rayhelm.run.local.config import count_gpus, hash_config, list_models, list_prefixes, merge
from rayhelm.run.local.data_path import merge_data_paths, name_data_path, read_data_path
from rayhelm.run.local.gateway import add_key
from rayhelm.run.local.prometheus import LocalMetrics, LocalService
from rayhelm.run.local.serve import find_running, up
from rayhelm.run.local.state import EndpointState, LocalEndpoint, default_folder
from rayhelm.run.local.tracing import adapt_tracing, check_url
from rayhelm.run.standin.checkpoint import write_checkpoint
from rayhelm.run.standin.model import adapt_for_local_gpus, make_stand_in
from rayhelm.run.standin.small_model import Downloaded, SmallModel, fetch, parse_small_model

__all__ = ["StateOption", "open_state", "up_command"]

StateOption = Annotated[
    Path | None,
    typer.Option("--state", help="State folder of the endpoint. Default: $XDG_STATE_HOME/rayhelm."),
]


def up_command(
    fleet: FleetArgument,
    service: Annotated[str | None, typer.Option("--service", help="Serve only this service of the fleet.")] = None,
    port: Annotated[int, typer.Option("--port", min=1024, max=65535, help="Port of the endpoint on 127.0.0.1.")] = 8000,
    gateway: Annotated[
        bool, typer.Option("--gateway/--no-gateway", help="Put the gateway in front; clients then need an API key.")
    ] = True,
    share_imports: Annotated[
        bool,
        typer.Option(
            "--share-imports",
            help="Without a GPU: import vLLM once and fork it for each process. Starts faster and uses less memory,"
            " but replaces private functions of Ray.",
        ),
    ] = False,
    small_model: Annotated[
        str,
        typer.Option(
            "--small-model",
            metavar="default|ID@REVISION",
            help="Without a GPU: replace chat models by this small one of a hub (HF_ENDPOINT), if the hub answers"
            " within seconds; else by random weights.",
        ),
    ] = "",
    metrics: Annotated[
        bool,
        typer.Option(
            "--metrics",
            help="Start Prometheus with the recording rules of the fleet.",
        ),
    ] = False,
    traces: Annotated[
        str,
        typer.Option("--traces", metavar="URL", help="Send a trace of each request to this OTLP receiver (HTTP)."),
    ] = "",
    state_folder: StateOption = None,
    format: FormatOption = Format.text,
) -> None:
    """Serve a fleet on this computer and return when every model answers.

    Without a GPU, tiny models with random weights replace the real ones (CPU stand-ins), or one small model does.
    """
    traces = check_url(traces) if traces else ""
    wanted = parse_small_model(small_model) if small_model else None
    state = open_state(state_folder)
    rendered = render_fleet(find_fleet_file(fleet))
    gpus = preflight.find_gpus()
    stand_in = gpus is None
    services = up_services(rendered, service)
    small = _fetch(wanted, rendered, services) if wanted and stand_in else None
    values, notes = _values(rendered, services, state, small, stand_in=stand_in)
    values = {name: adapt_tracing(each, traces) for name, each in values.items()}
    tasks = {plan.served_as: str(plan.task) for plan in rendered.plan.models.values()}
    ray = {name: _render_ray_service(rendered, name, values[name]) for name in values}
    config = merge({name: json.loads(service["spec"]["serveConfigV2"]) for name, service in ray.items()}, port=port)
    paths = [read_data_path(service) for service in ray.values()]
    data_path = merge_data_paths(paths)
    models, routes = list_models(config, tasks), list_prefixes(config, tasks)
    behind = select_models(rendered, routes, name_data_path(data_path)) if gateway else {}
    gateway_models = {name: model.model_dump() for name, model in behind.items()}
    digest = hash_config({**config, "gateway": gateway_models, "data_path": data_path})
    if any(path != data_path for path in paths):
        notes.append("the services differ in `serve.dataPath`; one Ray serves them, with the one nearest to `Python`")
    for note in notes:
        warn(note)
    if (endpoint := find_running(digest, state)) and (endpoint.prometheus or not metrics):
        _print_ready(endpoint, add_key(state, endpoint.url) if gateway else "", format)
        return
    preflight.check(
        state,
        port=port,
        models=len(models),
        small_models=_count_small(values, small),
        stand_in=stand_in,
        share_imports=share_imports,
        requested_gpus=count_gpus(config),
        gpus=gpus,
        gateway=gateway,
        metrics=metrics,
    )
    if others := preflight.find_other_rays(state):
        pids = ", ".join(str(process.pid) for process in others)
        warn(f"another Ray runs on this computer (pid {pids}). It is left alone; this one uses other ports")
    local_gateway = render_gateway(behind, routes, port, traces) if gateway else None
    with show_progress(format) as report_progress:
        endpoint = up(
            config,
            models,
            state,
            stand_in=stand_in,
            share_imports=share_imports and stand_in,
            digest=digest,
            gateway=local_gateway,
            metrics=_build_metrics(rendered, values) if metrics else None,
            traces=traces,
            data_path=data_path,
            report_progress=report_progress,
        )
    _print_ready(endpoint, local_gateway.key if local_gateway else "", format)


def open_state(folder: Path | None) -> EndpointState:
    """Return the state of the endpoint in `folder`, or in the default folder. Raises UsageError for a file."""
    if folder and folder.exists() and not folder.is_dir():
        raise UsageError(f"`--state {folder}` is a file; write a folder, for example `--state {folder}-state`")
    return EndpointState((folder or default_folder()).absolute())


def up_services(rendered: Rendered, wanted: str | None) -> list[str]:
    """List the services to serve: all that one computer needs, or `wanted`. Raises UsageError if there is none."""
    known = list(rendered.values)
    if wanted is None:
        return [service for service in known if not _is_duplicate(rendered, service)]
    if wanted not in known:
        raise UsageError(
            f"`--service`: the fleet has no service `{wanted}`; {did_you_mean(wanted, known)}".rstrip("; ")
        )
    return [wanted]


def _is_duplicate(rendered: Rendered, service: str) -> bool:
    """Return whether a service only has other placements or versions of models that are already served here."""
    plans = rendered.plan.of_service(service)
    if any(plan.served_as == plan.model for plan in plans):
        return False
    names = ", ".join(dict.fromkeys(plan.served_as for plan in plans))
    warn(f"{service}: left out: it serves {names}, which another service serves here; use `--service {service}`")
    return True


def _fetch(model: SmallModel, rendered: Rendered, services: list[str]) -> Downloaded | None:
    """Return the small model if the fleet has a chat model; a warning says why it is not there."""
    if not any(plan.task == "chat" for service in services for plan in rendered.plan.of_service(service)):
        return None
    result = fetch(model)
    if isinstance(result, str):
        warn(f"{model} is not served: {result}")
        return None
    return result


def _values(
    rendered: Rendered, services: list[str], state: EndpointState, small: Downloaded | None, *, stand_in: bool
) -> tuple[dict[str, RayServiceValues], list[str]]:
    """Values of each service as this computer can serve them, and notes on what differs from the fleet."""
    if not stand_in:
        return {service: adapt_for_local_gpus(rendered.values[service]) for service in services}, []
    architectures = {
        service: {plan.served_as: plan.architecture for plan in rendered.plan.of_service(service)}
        for service in services
    }
    results = {
        service: make_stand_in(rendered.values[service], architectures[service], state.stand_ins, small)
        for service in services
    }
    families = {family for result in results.values() for family in result.families}
    notes = ["no GPU found: other models replace the real ones"]
    if families:
        notes = ["no GPU found: tiny models with random weights replace the real ones; their answers have no meaning"]
    notes += [note for result in results.values() for note in result.notes]
    for family in families:
        write_checkpoint(family, state.stand_ins)
    values = {service: result.values for service, result in results.items() if _serves(result.values)}
    if not values:
        raise FleetError(Problem("no model of this fleet can be served without a GPU:\n" + "\n".join(notes[1:])))
    return values, notes


def _count_small(values: Mapping[str, RayServiceValues], small: Downloaded | None) -> int:
    models = [
        model for each in values.values() for app in each.serve.applications.values() for model in app.models.values()
    ]
    return sum(small is not None and model.source == str(small.folder) for model in models)


def _serves(values: RayServiceValues) -> bool:
    return bool(values.serve.applications or values.serve.custom_applications)


def _render_ray_service(rendered: Rendered, service: str, values: RayServiceValues) -> dict[str, Any]:
    objects = template(
        CHART, service, rendered.namespace(service), select_changed(values), kube_version=rendered.kubernetes(service)
    )
    return next(item for item in objects if item["kind"] == "RayService")


def _build_metrics(rendered: Rendered, values: Mapping[str, RayServiceValues]) -> LocalMetrics:
    """Services, and the recording rules that the fleet asks for."""
    return LocalMetrics(_list_services(rendered, values), build_recording_files(rendered))


def _list_services(rendered: Rendered, values: Mapping[str, RayServiceValues]) -> dict[str, LocalService]:
    """List applications and models of each service, which tell Prometheus whose series it reads."""
    return {
        service: LocalService(
            rendered.namespace(service),
            tuple(chosen.serve.applications),
            tuple(name for application in chosen.serve.applications.values() for name in application.models),
        )
        for service, chosen in values.items()
    }


def _print_ready(endpoint: LocalEndpoint, key: str, format: Format) -> None:
    """Print the endpoint, and `key` where there is a gateway: the only place that shows it."""
    if format is Format.json:
        print(json.dumps(endpoint.model_dump(mode="json") | ({"key": key} if key else {}), indent=2))
        return
    out = console()
    out.print(f"[bold green]ready[/bold green]  {endpoint.url}{'/v1' if key else ''}")
    for model in endpoint.models:
        prefix = f"/{model.model}" if key else model.prefix
        out.print(f"  {model.model}  {endpoint.url}{prefix}/v1  ({model.task})", soft_wrap=True)
    if key:
        print(f"\nkey: {key}\n     shown only now: rayhelm stores its hash; run `up` again for another key")
    if endpoint.prometheus:
        out.print(f"  Prometheus  {endpoint.prometheus}", soft_wrap=True)
    chat = next((model for model in endpoint.models if model.task == "chat"), None)
    if chat:
        body = {"model": chat.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 32}
        url = f"{endpoint.url}{'' if key else chat.prefix}/v1/chat/completions"
        headers = (f"-H 'Authorization: Bearer {key}' " if key else "") + "-H 'Content-Type: application/json'"
        print(f"\ncurl {url} {headers} -d '{json.dumps(body)}'")
    print(f"\n{_command()} down    # stop it")


def _command() -> str:
    """The name of this command in this shell: its path if the shell would not find it."""
    program = Path(sys.argv[0])
    if shutil.which("rayhelm") or not program.is_file():
        return "rayhelm"
    return os.path.relpath(program)
