"""`rayhelm promote`: the next weight of a new version of a model, from its objectives and the result of its tests."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rayhelm.cli.files import check_writable, replace_file, write_file
from rayhelm.cli.output import Format, FormatOption, HeaderFileOption, console, warn
from rayhelm.errors import UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.live.cost.client import open_client, read_headers
from rayhelm.live.cost.periods import last_minutes
from rayhelm.live.promotion.commit import describe_counts, describe_name
from rayhelm.live.promotion.decide import Wanted
from rayhelm.live.promotion.report import PromotionReport
from rayhelm.live.promotion.run import decide_promotion

__all__ = ["promote_command"]


def promote_command(
    fleet: Annotated[Path, typer.Argument(metavar="FLEET", help="The fleet file.")],
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The model with the new version: its `servedAs` has a `version`.")
    ],
    prometheus: Annotated[
        str, typer.Option(metavar="URL", help="Prometheus, or another store with its HTTP API; without /api/v1.")
    ],
    quality: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Result of a Job with golden prompts: JSON like {"passed": 48, "failed": 2}, or its ConfigMap.',
        ),
    ] = None,
    quality_share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of the golden prompts that have to pass.")
    ] = 1.0,
    steps: Annotated[str, typer.Option(metavar="LIST", help="Weights, one after another.")] = "1,5,20,50,100",
    last: Annotated[
        str, typer.Option(help="Period that is judged: minutes, hours, days or weeks until now, like 15m, 1h or 2d.")
    ] = "1h",
    start: Annotated[
        bool, typer.Option("--start", help="Begin with the first step; without it a weight of 0 stays.")
    ] = False,
    ignore_share: Annotated[
        bool,
        typer.Option(
            "--ignore-share",
            help="Judge also if the version got less than half of its weight, because clients select versions.",
        ),
    ] = False,
    write: Annotated[
        bool, typer.Option("--write/--dry-run", help="Write the weight into the fleet file, or only show the change.")
    ] = False,
    commit_message: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a commit message, if the weight changes; else the file is empty."),
    ] = None,
    header_file: HeaderFileOption = None,
    format: FormatOption = Format.text,
) -> None:
    """Decide the next weight of a new version: the next step, the same, or 0. `--write` writes it into the fleet file.

    It reads server errors, engine errors and latencies of both versions from Prometheus, and compares them with `slo`
    and with each other by exact tests. Nothing in a cluster is changed: commit the file, and deliver it.

    Exit codes: 0 a decision, whatever it is (`decision` of the JSON: promote, keep, roll back or finished). 1 a problem
    of the fleet file or of the result of the golden prompts. 2 wrong usage. 3 Prometheus does not answer, or its data
    have a gap. With 1, 2 and 3 the fleet file stays as it is.
    """
    path = find_fleet_file(fleet)
    wanted = Wanted(_read_steps(steps), quality_share, start, ignore_share)
    period = last_minutes(last, datetime.now(UTC))
    if commit_message:
        if commit_message.resolve() == path.resolve():
            raise UsageError("`--commit-message` is the fleet file; name another file: --commit-message message")
        check_writable(commit_message, "rayhelm promote FLEET MODEL ... --commit-message FILE")
    with open_client(prometheus, read_headers(header_file)) as client:
        report, before, after = decide_promotion(client, path, model, quality, wanted, period)
    message = f"{report.commit.subject}\n\n{report.commit.body}" if report.commit else ""
    if write and before != after:
        replace_file(path, before, after, "rayhelm promote FLEET MODEL ... --write")
        report = report.model_copy(update={"is_written": True})
    if commit_message:
        write_file(commit_message, message, "rayhelm promote FLEET MODEL ... --commit-message FILE")
    if format is Format.json:
        print(report.model_dump_json(indent=2))
    else:
        _print(report)


def _read_steps(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if all(part.isascii() and part.isdigit() and len(part) <= 3 for part in parts):
        steps = tuple(map(int, parts))
        if steps == tuple(sorted(set(steps))) and steps[0] >= 1 and steps[-1] <= 100:
            return steps
    raise UsageError(f"`--steps {text}` are no rising weights from 1 to 100; write them like `--steps 1,5,20,50,100`")


def _print(report: PromotionReport) -> None:
    title = f"{report.start:%Y-%m-%d %H:%M} to {report.end:%Y-%m-%d %H:%M} UTC · failures of requests"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for column in ("objective", "allowed", report.version, "present version", "requests needed", "result"):
        table.add_column(Text(column), overflow="fold")
    for each in report.criteria:
        allowed = "-" if each.allowed_share is None else f"{each.allowed_share:.2%}"
        cells = (describe_name(each), allowed, *describe_counts(each), str(each.needed_requests), each.verdict)
        table.add_row(*map(Text, cells))
    console().print(table)
    if quality := report.quality:
        print(f"golden prompts: {quality.passed} of {quality.passed + quality.failed} passed")
    weight = (
        f"{report.weight} %" if report.weight == report.next_weight else f"{report.weight} -> {report.next_weight} %"
    )
    print(
        f"{report.model} ({report.served_as}:{report.version}): {report.decision.value}, weight {weight}:"
        f" {report.reason}"
    )
    for text in report.warnings:
        warn(text)
    if report.missing_minutes:
        warn(f"Prometheus has no data for {report.missing_minutes} minutes of the period")
    if report.decision == "finished":
        print(f"next: write its source and revision at `{report.served_as}`, and remove `{report.model}` after that")
    if report.diff:
        print(report.diff, end="")
        print(f"{report.fleet}: written" if report.is_written else "not written: add --write")
