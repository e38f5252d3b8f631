"""`rayhelm cost`: what GPUs, requests and tokens cost, from the series of a Prometheus."""

import enum
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rayhelm.cli.cost_table import build_cost_table
from rayhelm.cli.files import check_writable
from rayhelm.cli.output import HeaderFileOption, console, remember_format, show_progress, warn
from rayhelm.errors import FleetError, UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.live.cost.client import open_client, read_headers
from rayhelm.live.cost.csv_file import write_csv
from rayhelm.live.cost.periods import Period, last_period, month_period
from rayhelm.live.cost.report import CostReport
from rayhelm.live.cost.run import build_report

__all__ = ["cost_command"]


_NOT_COUNTED = """Prometheus has no tokens by tenant; replicas count them if their image contains rayhelm
  fix:
    clusters: {main: {image: {repository: registry.example/team/ray-vllm, tag: 2.60.0-py312, includesRayhelm: true}}}"""


class CostFormat(enum.StrEnum):
    """Output format of `rayhelm cost`."""

    text = "text"
    json = "json"
    csv = "csv"


def cost_command(
    prometheus: Annotated[
        str, typer.Option(metavar="URL", help="Prometheus, or another store with its HTTP API; without /api/v1.")
    ],
    fleet: Annotated[
        Path | None,
        typer.Argument(
            metavar="FLEET", help="The fleet file: prices, and the figures of its plan beside the actual ones."
        ),
    ] = None,
    month: Annotated[
        list[str] | None, typer.Option(help="Calendar month in UTC, like 2026-10. Can be given several times.")
    ] = None,
    last: Annotated[
        str | None, typer.Option(help="Hours, days or weeks until now, like 24h, 30d or 4w; default: 30d.")
    ] = None,
    by_tenant: Annotated[
        bool,
        typer.Option(
            "--by-tenant",
            help="Divide each model among its tenants by their tokens. The image needs rayhelm.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of standard output.")
    ] = None,
    header_file: HeaderFileOption = None,
    format: Annotated[
        CostFormat,
        typer.Option(
            "--format",
            help="`text` for people, `json` for programs, `csv` for finance: a row for each month and model.",
            is_eager=True,
            callback=remember_format,
        ),
    ] = CostFormat.text,
) -> None:
    """Report what GPUs, requests and tokens cost, by service, model and tenant, from the series of a Prometheus.

    Ends with 1 if a price or a series is missing, and with 3 if Prometheus does not answer.
    """
    periods = _read_periods(month, last)
    if output:
        # The queries can take minutes: their result is not lost for a wrong path.
        check_writable(output, "rayhelm cost ... -o FILE")
    with open_client(prometheus, read_headers(header_file)) as client, show_progress(format) as show:
        report = build_report(client, periods, find_fleet_file(fleet) if fleet else None, show, by_tenant=by_tenant)
    _write(report, format, output)
    for period in report.periods:
        if period.is_partial:
            warn(
                f"Prometheus has data of {period.hours_with_data} of {period.hours} hours, from"
                f" {period.data_from:%Y-%m-%dT%H:%MZ}; the figures are sums over these hours, not scaled up"
            )
    missing = [*report.missing_prices, *report.missing_series]
    if by_tenant:
        missing += [f"{name}: {_NOT_COUNTED}" for name in report.uncounted_models]
    for line in dict.fromkeys(missing):
        warn(line)
    if missing:
        raise typer.Exit(FleetError.exit_code)


def _read_periods(months: list[str] | None, last: str | None) -> list[Period]:
    now = datetime.now(UTC)
    if months and last:
        raise UsageError("give either --month or --last")
    if months:
        return [month_period(month, now) for month in dict.fromkeys(months)]
    return [last_period(last or "30d", now)]


def _write(report: CostReport, format: CostFormat, output: Path | None) -> None:
    if format is CostFormat.text:
        _write_tables(report, output)
        return
    text = write_csv(report) if format is CostFormat.csv else report.model_dump_json(indent=2) + "\n"
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def _write_tables(report: CostReport, output: Path | None) -> None:
    tables = [build_cost_table(period, report) for period in report.periods]
    if not output:
        for table in tables:
            console().print(table)
        return
    with output.open("w", encoding="utf-8") as file:
        for table in tables:
            Console(file=file, width=160, highlight=False).print(table)
