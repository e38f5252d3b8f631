"""Puts the commands together, and turns every failure into words and an exit code."""

import json
import sys

import typer

from rayhelm.cli import down, fit, fleet_commands, schema_commands, up
from rayhelm.errors import FleetError, MissingError, RayhelmError

__all__ = ["app", "main"]

app = typer.Typer(
    name="rayhelm",
    help="From a fleet file to an inference API on Kubernetes, through Helm and GitOps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Exit codes: 0 fine · 1 the fleet has a problem · 2 wrong usage · 3 a tool, package or cluster is missing."""
    try:
        app()
    except RayhelmError as error:
        _tell(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read us has seen enough; a second flush at exit would complain again.
        sys.stderr.close()
        sys.exit(0)


def _tell(error: RayhelmError) -> None:
    if "json" in sys.argv and "--format" in " ".join(sys.argv):
        print(json.dumps(_as_json(error), indent=2))
        return
    print(f"rayhelm: {error}" if not isinstance(error, FleetError) else str(error), file=sys.stderr)
    if isinstance(error, FleetError) and len(error.problems) > 1:
        print(f"{len(error.problems)} problems", file=sys.stderr)


def _as_json(error: RayhelmError) -> dict[str, object]:
    if isinstance(error, FleetError):
        return {"problems": [problem.as_dict() for problem in error.problems]}
    if isinstance(error, MissingError):
        return {"missing": error.what, "how": error.how}
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


app.command("plan")(fleet_commands.plan_command)
app.command("fit")(fit.fit_command)
app.command("render")(fleet_commands.render_command)
app.command("lint")(fleet_commands.lint_command)
app.command("up")(up.up_command)
app.command("down")(down.down_command)
app.command("schema")(schema_commands.schema_command)
app.command("explain")(schema_commands.explain_command)
