"""`rayhelm plan`, `render` and `lint`: from a fleet file to what a review needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rayhelm.cli.output import Format, FormatOption, console, warn

if TYPE_CHECKING:
    from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["FleetArgument", "lint_command", "plan_command", "render_command"]

FleetArgument = Annotated[Path, typer.Argument(metavar="FLEET", help="The fleet file, or a folder with `fleet.yaml`.")]


def plan_command(
    fleet: FleetArgument,
    format: FormatOption = Format.text,
    reasons: Annotated[bool, typer.Option("--reasons/--no-reasons", help="Print why.")] = True,
) -> None:
    """Plan a fleet: what stands where, how it is split, what it costs, and why."""
    from rayhelm.planner.planner import plan_fleet
    from rayhelm.spec.load import load_fleet

    plan = plan_fleet(load_fleet(fleet_file(fleet)))
    if format is Format.json:
        print(plan.model_dump_json(indent=2))
        return
    _print_table(plan)
    if reasons:
        _print_reasons(plan)


def render_command(
    fleet: FleetArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write into; the fleet file's own when left out.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 where a file is stale.")] = False,
    manifests: Annotated[bool, typer.Option("--manifests", help="Also what Helm makes of it.")] = False,
) -> None:
    """Write the plan and the Helm values of a fleet (and with `--manifests` the Kubernetes objects)."""
    from rayhelm.errors import FleetError, Problem
    from rayhelm.fleet_files import files_of, manifests_of, render_fleet

    path = fleet_file(fleet)
    folder = output or path.parent
    rendered = render_fleet(path)
    files = files_of(rendered) | (manifests_of(rendered) if manifests else {})
    stale = [name for name, text in files.items() if not _same(folder / name, text)]
    if check and stale:
        mend = f"rayhelm render {path}" + (f" -o {output}" if output else "")
        raise FleetError([Problem("is stale", file=str(folder / name), mend=mend) for name in stale])
    for name in () if check else stale:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(files[name], encoding="utf-8")
    for name in files:
        print(f"{'written' if name in stale else 'current'}  {folder / name}")
    for model in rendered.plan.models.values():
        for text in model.warnings:
            warn(f"{model.model}: {text}")


def lint_command(
    fleet: FleetArgument,
    format: FormatOption = Format.text,
    serve: Annotated[
        bool, typer.Option("--serve/--no-serve", help="Ask Ray and vLLM themselves, where they are installed.")
    ] = True,
) -> None:
    """Check a fleet all the way: the file, the plan, the charts by helm, and the Serve config by Ray and vLLM."""
    import json

    from rayhelm.lint import lint_fleet

    checked = lint_fleet(fleet_file(fleet), ask_ray=serve)
    if format is Format.json:
        print(json.dumps({"checked": checked.done, "not_checked": checked.left_out, "problems": []}, indent=2))
        return
    for line in checked.done:
        print(f"ok       {line}")
    for line in checked.left_out:
        print(f"skipped  {line}")


def fleet_file(path: Path) -> Path:
    """The file itself, also when its folder is named."""
    return path / "fleet.yaml" if (path / "fleet.yaml").is_file() else path


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _print_table(plan: "Plan") -> None:
    from rich.table import Table

    table = Table(title=f"{plan.fleet} · vLLM {plan.vllm_version}", title_justify="left")
    for column in ("model", "pool", "cards", "split", "replicas", "context", "USD/h", "USD/M out"):
        table.add_column(column, justify="right" if column.startswith("USD") else "left")
    for model in plan.models.values():
        table.add_row(*_row(model))
    console().print(table)


def _row(model: "ModelPlan") -> tuple[str, ...]:
    split = f"TP {model.tensor_parallel_size} x PP {model.pipeline_parallel_size}"
    hour, million = model.price_per_hour, model.price_per_million_output_tokens
    return (
        model.model,
        model.pool,
        f"{model.gpus:g} x {model.gpu}",
        f"{model.gpu_fraction:g} of a card" if model.gpu_fraction < 1 else split,
        f"{model.min_replicas}-{model.max_replicas}",
        str(model.max_model_len),
        "?" if hour is None else f"{hour:.2f}",
        "-" if million is None else f"{million:.2f}",
    )


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
