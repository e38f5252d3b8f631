"""`rayhelm plan` and `rayhelm lint`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rayhelm.cli.output import NARROW, Format, FormatOption, console, warn
from rayhelm.cli.overrides_table import build_overrides_table
from rayhelm.cli.tenant_table import build_tenant_table, forwarded_names, joined_names
from rayhelm.fleet.find_file import find_fleet_file

if TYPE_CHECKING:
    from rich.table import Table

    from rayhelm.check.lint.fleet import Checked
    from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["FleetArgument", "build_plan_table", "lint_command", "plan_command"]

FleetArgument = Annotated[Path, typer.Argument(metavar="FLEET", help="The fleet file, or a folder with `fleet.yaml`.")]


def plan_command(
    fleet: FleetArgument,
    format: FormatOption = Format.text,
    measured: Annotated[
        Path | None,
        typer.Option(
            "--measured",
            metavar="FILE",
            help="Measurements of `rayhelm probe` and `rayhelm bench`, in place of those that the fleet file names.",
        ),
    ] = None,
    reasons: Annotated[
        bool,
        typer.Option("--reasons/--no-reasons", help="Print the reason of each decision; warnings are always printed."),
    ] = True,
    what_if: Annotated[
        str | None,
        typer.Option(
            "--what-if",
            metavar="CHANGES",
            help="Compare the plan with one of a changed fleet, in one table: `traffic=2x,gpu=H200-SXM-141GB`. Keys:"
            " traffic, ttft, tpot, source, maxNumSeqs, gpu, nodes, price; NAME.KEY changes one model or pool.",
        ),
    ] = None,
    alternatives: Annotated[
        bool,
        typer.Option(
            "--alternatives",
            help="List cheaper and safer shapes of each model, with price and saving: a quantized checkpoint, more"
            " sequences, another GPU or pool, a shared GPU, spot nodes, replicas on two pools, one more replica.",
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="Write the plan as a page for a browser, with a map of the GPUs."),
    ] = None,
    open_page: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Show that page in a browser, with fields for traffic, objectives, nodes, GPUs and prices.",
        ),
    ] = False,
) -> None:
    """Plan a fleet: where each model runs, how it is split over GPUs, what it costs, and why.

    Warnings list everything that `render` and `lint` will refuse, as far as it is known without helm.
    """
    import json

    from rayhelm.check.lint.preview import preview_problems
    from rayhelm.cli.plan_comparison import build_alternatives_table, print_comparison
    from rayhelm.deploy.render.warnings import find_open_gateways, find_open_images, list_warnings
    from rayhelm.fleet.load import load_fleet
    from rayhelm.planner.alternatives import list_alternatives
    from rayhelm.planner.planner import plan_fleet

    loaded = load_fleet(find_fleet_file(fleet), measured)
    if open_page or page:
        from rayhelm.cli.plan_page import check_options, show_page, write_page

        check_options(format, what_if, open_page=open_page, alternatives=alternatives)
        if page:
            write_page(loaded, what_if, page)
        if open_page:
            show_page(loaded)
        return
    if what_if is not None:
        print_comparison(loaded, what_if, format)
        return
    plan = plan_fleet(loaded)
    found = list_alternatives(loaded, plan) if alternatives else {}
    problems = preview_problems(plan, loaded)
    if format is Format.json:
        previewed: dict[str, object] = {
            "problems": [problem.as_dict() for problem in problems],
            "images_without_digest": [image.as_dict() for image in find_open_images(plan, loaded)],
            "gateways_without_host": [problem.as_dict() for problem in find_open_gateways(plan, loaded)],
        }
        if alternatives:
            previewed["alternatives"] = {
                name: [each.model_dump(mode="json") for each in shapes] for name, shapes in found.items()
            }
        print(json.dumps(plan.model_dump(mode="json") | previewed, indent=2))
        return
    out = console(NARROW)
    out.print(build_plan_table(plan))
    if alternatives:
        out.print(build_alternatives_table(plan, found))
    if plan.tenants:
        out.print(build_tenant_table(plan))
        for text in (*joined_names(plan), *forwarded_names(plan)):
            out.print(text, highlight=False)
    if plan.overrides:
        out.print(build_overrides_table(plan))
    if reasons:
        _print_reasons(plan)
    for text in (*(plan.warnings if reasons else plan.all_warnings), *list_warnings(plan, loaded)):
        _print_warning(text)
    for problem in problems:
        _print_warning(f"`rayhelm render` or `rayhelm lint` will refuse this: {problem}")


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
            help="Check the Serve config with Ray and vLLM; default: if they are installed.",
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
    config with Ray and vLLM. Kubernetes objects are checked with the policies, and the queries of rules, dashboards and
    scalers with the catalog of metrics. In values, metric names that do not exist are reported. A RayService is also
    compared with the engine arguments of vLLM, the versions in its images and the GPUs of its pods.

    Ends with 1 if there is a problem, and with 3 if a check could not run because a tool is missing.
    """
    from rayhelm.check.admission.manifests import are_manifests
    from rayhelm.check.lint.fleet import check_fleet
    from rayhelm.check.lint.manifests import check_manifests
    from rayhelm.check.lint.queries import check_queries, find_query_files, is_file_of_others
    from rayhelm.errors import FleetError, MissingError, UsageError

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
        checked = check_queries(file) if has_queries else check_fleet(file, ask_ray=serve)
    _print_checked(checked, format, allow_missing=allow_missing)
    if checked.problems and format is Format.json:
        raise typer.Exit(FleetError.exit_code)
    if checked.problems:
        raise FleetError(checked.problems)
    if any(each.is_required for each in checked.not_checked) and not allow_missing:
        raise typer.Exit(MissingError.exit_code)


def _print_checked(checked: "Checked", format: Format, *, allow_missing: bool) -> None:
    """Print what was checked and what was not; how to get a missing tool goes to standard error."""
    import json

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


def build_plan_table(plan: "Plan") -> "Table":
    """The models of a plan, in cells of two lines so that the table fits 80 columns. Long names fold, and numbers stay
    whole."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=f"{plan.fleet} · vLLM {plan.vllm_version}",
        title_justify="left",
    )
    for column in ("model\non pool", "GPUs\nsplit"):
        table.add_column(column, overflow="fold")
    for column in ("replicas\ncontext", "TTFT s\n(90 %)", "TPOT ms\n(90 %)", "USD/h", "USD/M\nout"):
        table.add_column(column, justify="right", no_wrap=True)
    for model in plan.models.values():
        table.add_row(*_row(model))
    return table


def _row(model: "ModelPlan") -> tuple[str, ...]:
    split = f"{model.gpu_fraction:g} of a GPU" if model.gpu_fraction < 1 else model.split
    hour, million = model.price_per_hour, model.price_per_million_output_tokens
    return (
        f"{model.model}\n{model.pool}",
        f"{model.gpus:g} x {model.gpu}\n{split}",
        f"{model.min_replicas}-{model.max_replicas}\n{model.max_model_len}",
        _format_interval(model.estimate.ttft_s, model.estimate.ttft_interval_s, 1),
        _format_interval(model.estimate.tpot_s, model.estimate.tpot_interval_s, 1000),
        "?" if hour is None else f"{hour:.2f}",
        "-" if million is None else f"{million:.2f}",
    )


def _format_interval(mid: float | None, interval: tuple[float, float] | None, scale: float) -> str:
    """Return an estimate and its interval in the lines of a cell."""
    if mid is None or interval is None:
        return "-"
    middle, low, high = (
        f"{value * scale:.0f}" if value * scale >= 10 else f"{value * scale:.2g}" for value in (mid, *interval)
    )
    return f"{middle}\n({low}-{high})"


def _print_warning(text: str) -> None:
    from rich.text import Text

    console().print(Text.assemble("\n", ("warning", "yellow"), ": ", text), soft_wrap=True)


def _print_reasons(plan: "Plan") -> None:
    from rich.markup import escape

    out = console()
    for model in plan.models.values():
        out.print(f"\n[bold]{model.model}[/bold]")
        for reason in model.reasons:
            chosen, because = escape(reason.chosen), escape(reason.because)
            out.print(f"  {reason.decision} = [cyan]{chosen}[/cyan]: {because}", soft_wrap=True)
        for text in model.warnings:
            out.print(f"  [yellow]warning[/yellow]: {escape(text)}", soft_wrap=True)
        for text in model.unknown:
            out.print(f"  [magenta]unknown[/magenta]: {escape(text)}", soft_wrap=True)
