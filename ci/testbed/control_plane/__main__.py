"""`ci/control-plane up|down|status`."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from rayhelm.cli.output import Format, FormatOption, console
from rayhelm.errors import MissingError, RayhelmError
from testbed.control_plane.down import down
from testbed.control_plane.home import Home, Record, home
from testbed.control_plane.status import State, status
from testbed.control_plane.up import up

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

NameOption = Annotated[str, typer.Option("--name", help="One of several control planes side by side.")]


@app.command("up")
def up_command(
    name: NameOption = "default",
    port: Annotated[int | None, typer.Option("--port", help="Of the API server, on loopback; else a free one.")] = None,
    join: Annotated[
        Path | None,
        typer.Option("--join", exists=True, dir_okay=False, help="A kubeconfig: only the add-ons, on that cluster."),
    ] = None,
) -> None:
    """Start a control plane with the KubeRay operator and KWOK, and return when it is ready."""
    begin = time.monotonic()
    bed = up(home(name), port=port, join=join, say=_say)
    print(f"ready after {time.monotonic() - begin:.1f} s: {bed.record.told}")
    print(f"export KUBECONFIG={bed.home.kubeconfig}")


@app.command("down")
def down_command(name: NameOption = "default") -> None:
    """End it; nothing of it stays."""
    place = home(name)
    if not place.folder.exists():
        print("no control plane runs here")
        return
    print(f"ended: {down(place)} processes")


@app.command("status")
def status_command(name: NameOption = "default", format: FormatOption = Format.text) -> None:
    """What runs; ends with 1 where something of it does not answer, with 3 where nothing is."""
    place = home(name)
    states = status(place)
    record = place.record()
    if format is Format.json:
        print(json.dumps({"kubeconfig": str(place.kubeconfig), "parts": [asdict(state) for state in states]}, indent=2))
    elif record:
        _print(place, record, states)
    if record is None:
        raise MissingError("no control plane runs here: `make control-plane` starts one")
    if any(state.state != "ready" for state in states):
        raise SystemExit(1)


def _print(place: Home, record: Record, states: list[State]) -> None:
    print(f"{record.told}\nexport KUBECONFIG={place.kubeconfig}")
    table = Table("part", "state", "pid", "port", Column("memory", justify="right"))
    for state in states:
        table.add_row(state.name, state.state, str(state.pid), str(state.port), f"{state.memory / 2**20:.0f} MiB")
    console().print(table)
    print(f"{sum(state.memory for state in states) / 2**20:.0f} MiB in all; logs are in {place.folder / 'logs'}")
    for line in record.left_out:
        print(f"not installed: {line}")


def _say(line: str) -> None:
    print(f"==> {line}", flush=True)


def main() -> None:
    try:
        app()
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
