"""The app: its commands, and the message and exit code of each failure."""

import errno
import gc
import json
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from rayhelm.cli import (
    bench,
    catalog,
    charts,
    cost,
    dashboards,
    diff,
    discover,
    doctor,
    down,
    estimate,
    fit,
    fleet_commands,
    images,
    init,
    probe,
    rehearse,
    render,
    rules,
    schema_commands,
    traffic,
    up,
)
from rayhelm.cli.output import Format, format_of
from rayhelm.cli.printable import escape_output
from rayhelm.errors import FleetError, MissingError, RayhelmError

__all__ = ["app", "main"]

_WRONG_USAGE: Any = typer.BadParameter.__mro__[1]
"""UsageError of click, which typer bundles under changing names."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Commands(TyperGroup):
    """Reports failures while the parsed options are known."""

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
    """Name the choices of a wrong value, and the new name of an option that was renamed."""
    from rayhelm.cli.renamed_options import new_option
    from rayhelm.cli.wrong_usage import describe_argument
    from rayhelm.fleet.renamed import describe_renamed

    if message := describe_argument(error):
        error.message = message
    old = getattr(error, "option_name", None)
    if old and error.ctx and (new := new_option(error.ctx.info_name, old)):
        error.message, error.possibilities = describe_renamed(old, new), None


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


app.command("init")(init.init_command)
app.command("plan")(fleet_commands.plan_command)
app.command("fit")(fit.fit_command)
app.command("estimate")(estimate.estimate_command)
app.command("cost")(cost.cost_command)
app.command("discover")(discover.discover_command)
app.command("probe")(probe.probe_command)
app.command("traffic")(traffic.traffic_command)
app.command("bench")(bench.bench_command)
app.command("render")(render.render_command)
app.command("images")(images.images_command)
app.command("diff")(diff.diff_command)
app.command("lint")(fleet_commands.lint_command)
app.command("up")(up.up_command)
app.command("down")(down.down_command)
app.command("rehearse")(rehearse.rehearse_command)
app.command("doctor")(doctor.doctor_command)
app.command("catalog")(catalog.catalog_command)
app.command("charts")(charts.charts_command)
app.command("dashboards")(dashboards.dashboards_command)
app.command("rules")(rules.rules_command)
app.command("schema")(schema_commands.schema_command)
app.command("explain")(schema_commands.explain_command)
