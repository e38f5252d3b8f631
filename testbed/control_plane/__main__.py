"""`ci/control-plane up|nodes|down|status`."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rayhelm.cli.output import Format, FormatOption
from rayhelm.errors import MissingError, RayhelmError
from testbed.command import run, say, show
from testbed.control_plane.down import alive, down
from testbed.control_plane.home import Home, home
from testbed.control_plane.lock import is_held
from testbed.control_plane.status import status
from testbed.control_plane.up import up
from testbed.nodes import __main__ as nodes

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

NameOption = Annotated[str, typer.Option("--name", help="One of several control planes side by side.")]


@app.command("up")
def up_command(
    name: NameOption = "default",
    port: Annotated[
        int | None,
        typer.Option("--port", help="Port of the API server; default: a free port.", min=1, max=65535),
    ] = None,
    join: Annotated[
        Path | None,
        typer.Option(
            "--join",
            exists=True,
            dir_okay=False,
            help="Existing cluster that gets only the add-ons.",
        ),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Join a cluster even if it has other workloads.")] = False,
) -> None:
    """Start a control plane with the KubeRay operator and KWOK, and return when it is ready."""
    begin = time.monotonic()
    plane = up(home(name), port=port, join=join, anyway=anyway, say=say)
    print(f"ready after {time.monotonic() - begin:.1f} s: {plane.record.description}")
    print(f"export KUBECONFIG={plane.home.kubeconfig}")


@app.command("nodes")
def nodes_command(
    fleet: Annotated[Path, typer.Argument(help="A fleet file.")],
    cluster: Annotated[str, typer.Option("--cluster", help="Cluster of the fleet, if it has several.")] = "",
    name: NameOption = "default",
) -> None:
    """Create the simulated nodes of a fleet's pools on the control plane."""
    place = home(name)
    if place.record() is None:
        raise MissingError(_describe_missing(place), "make control-plane")
    where = ["--cluster", cluster, "--kubeconfig", str(place.kubeconfig)]
    raise SystemExit(nodes.main([str(fleet / "fleet.yaml" if fleet.is_dir() else fleet), *where]))


@app.command("down")
def down_command(name: NameOption = "default") -> None:
    """Stop the control plane and remove all of its files."""
    place = home(name)
    there = place.folder.exists() or alive(place) or is_held(place)
    ended = down(place, say)
    print(f"ended: {ended} processes" if there else _describe_missing(place))


@app.command("status")
def status_command(name: NameOption = "default", format: FormatOption = Format.text) -> None:
    """Show the parts of the control plane. Exit code 1: a part does not answer; 3: no control plane runs."""
    place = home(name)
    states = status(place)
    record = place.record()
    show(place, record, states, format)
    if is_held(place):
        raise RayhelmError("another command is changing this control plane")
    if record is None and (strays := alive(place)):
        raise RayhelmError(f"its record is lost, and {strays} of its processes run: {_format_down(place)} stops them")
    if record is None:
        raise MissingError(_describe_missing(place), "make control-plane")
    if not record.complete:
        raise RayhelmError(f"its start is incomplete: `up` starts again, {_format_down(place)} removes it")
    if ill := [state.name for state in states if state.state != "ready"]:
        fix = "it was not started here" if record.joined and ill[0] == "kube-apiserver" else "`up` starts it again"
        raise RayhelmError(f"{', '.join(ill)} did not answer: {fix}")


def _format_down(place: Home) -> str:
    return f"`ci/control-plane down --name {place.name}`"


def _describe_missing(place: Home) -> str:
    others = ", ".join(place.other_names())
    return f"no control plane {place.name} runs here" + (f"; there is {others}" if others else "")


def main() -> None:
    run(app, "ci/control-plane")


if __name__ == "__main__":
    main()
