"""Output and exit codes of `ci/control-plane` and `ci/node`."""

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.table import Column, Table

from rayhelm.cli.output import Format, console
from rayhelm.errors import MissingError, RayhelmError
from testbed.control_plane.home import Home, Record
from testbed.control_plane.status import State

__all__ = ["run", "say", "show"]


def say(line: str) -> None:
    print(f"==> {line}", flush=True)


def show(home: Home, record: Record | None, states: Sequence[State], format: Format) -> None:
    """Print the parts that run. As text, print nothing if no part runs."""
    if format is Format.json:
        print(json.dumps({"kubeconfig": str(home.kubeconfig), "parts": [asdict(state) for state in states]}, indent=2))
        return
    if record is None:
        return
    print(f"{record.description}\nexport KUBECONFIG={home.kubeconfig}")
    table = Table("part", "state", "pid", "port", Column("memory", justify="right"))
    for state in states:
        table.add_row(
            state.name, state.state, str(state.pid or "-"), str(state.port), f"{state.memory / 2**20:.0f} MiB"
        )
    console().print(table)
    print(f"{sum(state.memory for state in states) / 2**20:.0f} MiB in all; logs are in {home.folder / 'logs'}")
    for line in record.left_out:
        print(f"not installed: {line}")


def run(app: typer.Typer, name: str) -> None:
    """Run a command. Exit codes: 0 success, 1 failure, 2 wrong usage, 3 a tool or package is missing, 130
    interrupted."""
    # SIGTERM and a closed terminal remove everything that `up` started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        app(prog_name=name)
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        print(f"error: {error.filename or 'this computer'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(MissingError.exit_code)
