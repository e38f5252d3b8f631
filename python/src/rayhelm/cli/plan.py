"""`rayhelm plan`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rayhelm.check.lint.preview import preview_problems
from rayhelm.cli.output import NARROW, FleetArgument, Format, FormatOption, console
from rayhelm.cli.overrides_table import build_overrides_table
from rayhelm.cli.tenant_table import build_tenant_table, forwarded_names, joined_names
from rayhelm.deploy.render.warnings import find_open_gateways, find_open_images, list_warnings
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet

if TYPE_CHECKING:
    from rayhelm.planner.alternatives import Alternative

__all__ = ["build_plan_table", "plan_command"]


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
            help="List cheaper and safer shapes of each model, with price and saving: a quantized checkpoint,"
            " another GPU or pool, a shared GPU, spot nodes, replicas on two pools, one more replica.",
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
        from rayhelm.cli.plan_comparison import print_comparison

        print_comparison(loaded, what_if, format)
        return
    plan = plan_fleet(loaded)
    found = _list_alternatives(plan) if alternatives else {}
    problems = preview_problems(plan)
    if format is Format.json:
        previewed: dict[str, object] = {
            "problems": [problem.as_dict() for problem in problems],
            "images_without_digest": [image.as_dict() for image in find_open_images(plan)],
            "gateways_without_host": [plan.source.locate(problem).as_dict() for problem in find_open_gateways(plan)],
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
        from rayhelm.cli.plan_comparison import build_alternatives_table

        out.print(build_alternatives_table(plan, found))
    if plan.tenants:
        out.print(build_tenant_table(plan))
        for text in (*joined_names(plan), *forwarded_names(plan)):
            out.print(text, highlight=False)
    if plan.overrides:
        out.print(build_overrides_table(plan))
    if reasons:
        _print_reasons(plan)
    for text in (*(plan.warnings if reasons else plan.all_warnings), *list_warnings(plan)):
        _print_warning(text)
    for problem in problems:
        _print_warning(f"`rayhelm render` or `rayhelm lint` will refuse this: {problem}")


def _list_alternatives(plan: Plan) -> "dict[str, list[Alternative]]":
    from rayhelm.planner.alternatives import list_alternatives

    return list_alternatives(plan)


def build_plan_table(plan: Plan) -> Table:
    """The models of a plan, in cells of two lines so that the table fits 80 columns. Long names fold, and numbers stay
    whole. Without traffic a third line has the requests in flight of each figure: `of 1`, `of 256`."""
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


def _row(model: ModelPlan) -> tuple[str, ...]:
    split = f"{model.gpu_fraction:g} of a GPU" if model.gpu_fraction < 1 else model.split
    most = model.estimate.tpot_concurrency
    hour, million = model.price_per_hour, model.price_per_million_output_tokens
    return (
        f"{model.model}\n{model.pool}",
        f"{model.gpus:g} x {model.gpu}\n{split}",
        f"{model.min_replicas}-{model.max_replicas}\n{model.max_model_len}",
        _format_interval(model.estimate.ttft_s, model.estimate.ttft_interval_s, 1) + ("\nof 1" if most else ""),
        _format_interval(model.estimate.tpot_s, model.estimate.tpot_interval_s, 1000)
        + (f"\nof {most}" if most else ""),
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
    console().print(Text.assemble("\n", ("warning", "yellow"), ": ", text), soft_wrap=True)


def _print_reasons(plan: Plan) -> None:
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
