"""The app: its commands, and the message and exit code of each failure."""

import ast
import errno
import gc
import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.resources import files
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from rayhelm.cli.output import Format, format_of
from rayhelm.cli.printable import escape_output
from rayhelm.errors import FleetError, MissingError, RayhelmError

__all__ = ["COMMANDS", "app", "main"]

_WRONG_USAGE: Any = typer.BadParameter.__mro__[1]
"""UsageError of click, which typer bundles under changing names."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

COMMANDS = {
    "init": "init",
    "plan": "plan",
    "fit": "fit",
    "estimate": "estimate",
    "cost": "cost",
    "discover": "discover",
    "probe": "probe",
    "traffic": "traffic",
    "bench": "bench",
    "render": "render",
    "images": "images",
    "diff": "diff",
    "lint": "lint",
    "promote": "promote",
    "up": "up",
    "down": "down",
    "rehearse": "rehearse",
    "doctor": "doctor",
    "catalog": "catalog",
    "charts": "charts",
    "dashboards": "dashboards",
    "rules": "rules",
    "schema": "schema_commands",
    "explain": "schema_commands",
}
"""The module of each command, which is imported when the command is asked for: many are slow to import."""


class _Lazy(Mapping[str, Any]):
    """The commands, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        module = import_module(f"rayhelm.cli.{COMMANDS[name]}")
        info = CommandInfo(name, callback=getattr(module, f"{name}_command"))
        return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode="rich")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Commands(TyperGroup):
    """Reports failures while the parsed options are known."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast(Any, _Lazy())

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._read_helps()
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._read_helps()
        return super().shell_complete(ctx, incomplete)

    def _read_helps(self) -> None:
        """A list of commands needs their docstrings only: reading them takes a tenth of what importing them takes."""
        self.commands = {name: TyperCommand(name, help=_read_help(name)) for name in COMMANDS}

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout:
                sys.stdout.flush()
            return result
        except RayhelmError as error:
            _report(error, format_of(ctx))
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(0) from None
        except OSError as error:
            if error.filename is None and error.errno not in _FULL:
                raise
            _discard_output()
            print(f"rayhelm: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
            raise typer.Exit(MissingError.exit_code) from None


def _read_help(name: str) -> str | None:
    tree = ast.parse(files("rayhelm.cli").joinpath(f"{COMMANDS[name]}.py").read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return next(ast.get_docstring(each) for each in functions if each.name == f"{name}_command")


app = typer.Typer(
    name="rayhelm",
    help="From a fleet file to an inference API on Kubernetes, through Helm and GitOps.",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Exit codes: 0 fine · 1 the fleet has a problem · 2 wrong usage · 3 a tool, package or cluster is missing."""
    # Importing creates many objects that stay; scanning them again and again took a tenth of `rayhelm plan`.
    gc.set_threshold(50_000, 20, 20)
    with escape_output():
        _main()


def _main() -> None:
    try:
        sys.exit(_run())
    except _WRONG_USAGE as error:
        _describe_plainly(error)
        if format_of(error.ctx) is Format.json:
            print(json.dumps({"error": error.format_message()}, indent=2))
        else:
            error.show()
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)


def _run() -> Any:
    """Run the command, and return its exit code. Only a closed pipe makes click exit by itself, with 1."""
    try:
        return app(standalone_mode=False)
    except SystemExit:
        _discard_output()
        return 0


def _describe_plainly(error: Any) -> None:
    """Name the choices of a wrong value."""
    from rayhelm.cli.wrong_usage import describe_argument

    if message := describe_argument(error):
        error.message = message


def _discard_output() -> None:
    """Redirect standard output to nothing: the flush at exit would fail again, with a message."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: RayhelmError, format: Format) -> None:
    if format is Format.json:
        print(json.dumps(_as_json(error), indent=2))
        return
    print(f"rayhelm: {error}" if not isinstance(error, FleetError) else str(error), file=sys.stderr)
    if isinstance(error, FleetError) and len(error.problems) > 1:
        print(f"{len(error.problems)} problems", file=sys.stderr)


def _as_json(error: RayhelmError) -> dict[str, object]:
    if isinstance(error, FleetError):
        return {"problems": [problem.as_dict() for problem in error.problems]}
    if isinstance(error, MissingError):
        return {"missing": error.what, "how": error.how, "fixes": [fix.as_dict() for fix in error.fixes]}
    return {"error": str(error)}


def _version(wanted: bool) -> None:
    if wanted:
        from rayhelm import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None: ...
