"""`rayhelm lint`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rayhelm.check.admission.manifests import are_manifests
from rayhelm.check.lint.fleet import Checked, check_fleet
from rayhelm.check.lint.manifests import check_manifests
from rayhelm.check.lint.queries import check_queries, find_query_files, is_file_of_others
from rayhelm.cli.output import Format, FormatOption, warn
from rayhelm.errors import FleetError, MissingError, UsageError
from rayhelm.fleet.find_file import find_fleet_file

__all__ = ["lint_command"]


def lint_command(
    fleet: Annotated[
        Path,
        typer.Argument(
            metavar="FLEET",
            help="The fleet file, or a folder with `fleet.yaml`; or Kubernetes objects, Prometheus rules, Grafana"
            " dashboards or values, as file or folder.",
        ),
    ],
    format: FormatOption = Format.text,
    serve: Annotated[
        bool | None,
        typer.Option(
            "--serve/--no-serve",
            help="Also let Ray and vLLM themselves read the Serve config; they must be installed, and take seconds.",
            show_default=False,
        ),
    ] = None,
    policies: Annotated[
        Path | None,
        typer.Option("--policies", help="Your own admission policies for Kubernetes objects; file or folder."),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="End with 0 although a check could not run for a missing tool.")
    ] = False,
) -> None:
    """Check a fleet: the file, the plan, the charts with helm, the objects with the admission policies, and the Serve
    config with the keys and types of Ray and vLLM. Kubernetes objects are checked with the policies, and the queries of
    rules, dashboards and scalers with the catalog of metrics. In values, metric names that do not exist are reported. A
    RayService is also compared with the engine arguments of vLLM, the versions in its images and the GPUs of its pods.

    Ends with 1 if there is a problem, and with 3 if a check could not run because a tool is missing.
    """
    file = find_fleet_file(fleet)
    has_manifests = are_manifests(file)
    has_queries = bool(find_query_files(file))
    if policies and not has_manifests:
        raise UsageError(
            "`--policies` is for Kubernetes objects; a fleet is checked with the policies of its own platform values."
            f" Render it first: rayhelm render {fleet} -o FOLDER --manifests; then: rayhelm lint FOLDER/manifests"
            f" --policies {policies}"
        )
    if serve is not None and (has_manifests or has_queries):
        option = "--serve" if serve else "--no-serve"
        raise UsageError(f"`{option}` is for a fleet: leave it out, the Serve config is checked with its fleet")
    if not has_manifests and not has_queries and is_file_of_others(file):
        raise UsageError(
            f"`{file}` is no file that lint knows: a fleet file has `fleet`, `pools` and `models`. It also reads"
            " Kubernetes objects, rules of Prometheus, dashboards of Grafana, and values of these charts, of"
            " prometheus-adapter, of Prometheus and of kube-prometheus-stack"
        )
    if has_manifests:
        checked = check_manifests(file, policies)
        checked.add(check_queries(file))
    else:
        checked = check_queries(file) if has_queries else check_fleet(file, ask_ray=bool(serve))
    _print_checked(checked, format, allow_missing=allow_missing)
    if checked.problems and format is Format.json:
        raise typer.Exit(FleetError.exit_code)
    if checked.problems:
        raise FleetError(checked.problems)
    if any(each.is_required for each in checked.not_checked) and not allow_missing:
        raise typer.Exit(MissingError.exit_code)


def _print_checked(checked: Checked, format: Format, *, allow_missing: bool) -> None:
    """Print what was checked and what was not; how to get a missing tool goes to standard error."""
    if format is Format.json:
        not_checked = [{"what": each.what, "how": each.how} for each in checked.not_checked]
        problems = [problem.as_dict() for problem in checked.problems]
        lists = {"checked": checked.done, "not_checked": not_checked, "warnings": checked.warnings}
        print(json.dumps({**lists, "problems": problems}, indent=2))
        return
    for line in checked.warnings:
        warn(line)
    for line in checked.done:
        print(f"ok       {line}")
    for each in checked.not_checked:
        print(f"skipped  {each.what}")
        if each.is_required and not allow_missing:
            print("\n".join(f"    {line}" for line in each.how.splitlines()), file=sys.stderr)
