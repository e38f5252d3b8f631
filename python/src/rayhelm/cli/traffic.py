"""`rayhelm traffic`: the traffic of each model, from logs, for the fleet file."""

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.table import Column, Table
from rich.text import Text

from rayhelm.cli.files import check_new, write_file
from rayhelm.cli.output import Format, FormatOption, console, show_progress, warn
from rayhelm.errors import UsageError
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.live.traffic.fleet_text import format_models
from rayhelm.live.traffic.records import TRACE_MODEL, TraceError, read_lines
from rayhelm.live.traffic.summary import ModelTraffic, TrafficLog, summarize

__all__ = ["traffic_command"]

_COMMAND = "rayhelm traffic FILE... -o FILE"
_BARS = "▁▂▃▄▅▆▇█"


def traffic_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Logs of the gateway and of the engine (`logs.requests`), or a CSV trace with the columns TIMESTAMP,"
            " ContextTokens and GeneratedTokens; also with gzip; - reads standard input.",
        ),
    ],
    window: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, max=86400, help="Length of the windows that rates are taken of.")
    ] = 60,
    percentile: Annotated[
        float, typer.Option(min=50, max=100, help="Share of the windows that the planned rate covers, %.")
    ] = 99,
    model: Annotated[str, typer.Option(help="Only this model; for a trace, its name.")] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the YAML to a new file.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Measure the traffic of each model in logs, and print it as `models.*.traffic` of a fleet file.

    Gateway lines have arrivals and rejected requests; engine lines have tokens. With both, a request is counted once.
    Ends with 2 if no line is about a request of a model.
    """
    if output:
        check_new(output, _COMMAND)
    log = _read_files(files, format)
    found = _select(summarize(log, window, percentile), model)
    if not found:
        raise _build_error(log, model)
    if log.skipped:
        warn(f"{log.skipped} lines are about no request of a model")
    if format is Format.json:
        body = {"models": {name: each.model_dump(mode="json") for name, each in found.items()}, "skipped": log.skipped}
        print(json.dumps(body, indent=2))
        return
    _show(found)
    if output:
        write_file(output, format_models(found), _COMMAND)
    else:
        print(format_models(found), end="")


def _read_files(files: list[Path], format: Format) -> TrafficLog:
    log = TrafficLog()
    with show_progress(format) as watch:
        for file in files:
            watch(f"reading {file}")
            try:
                with _open(file) as stream:
                    log.add(read_lines(stream))
            except (OSError, EOFError) as error:
                raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
            except TraceError as error:
                raise UsageError(f"{file}: {error}") from None
    return log


@contextmanager
def _open(file: Path) -> Iterator[TextIO]:
    if str(file) == "-":
        yield sys.stdin
        return
    with file.open("rb") as head:
        is_gzip = head.read(2) == b"\x1f\x8b"
    with gzip.open(file, "rt", errors="replace") if is_gzip else file.open(errors="replace") as stream:
        yield stream


def _select(found: Mapping[str, ModelTraffic], model: str) -> Mapping[str, ModelTraffic]:
    if not model:
        return found
    if model not in found and list(found) == [TRACE_MODEL]:
        return {model: found[TRACE_MODEL]}
    return {name: each for name, each in found.items() if name == model}


def _build_error(log: TrafficLog, model: str) -> UsageError:
    names = sorted({name for name, _ in log.requests})
    if model and names:
        return UsageError(f"no request of model `{model}`; {did_you_mean(model, names)}")
    if names:
        return UsageError("every request was rejected with 4xx, so there is no load to plan for")
    if not log.skipped:
        return UsageError("no lines: the files are empty, or a trace has a header only")
    return UsageError(
        f"{log.skipped} lines, and none is about a request of a model. Give container logs, one JSON object per line:"
        " of the gateway (`haproxy`), or of heads and workers (`logs`; clusters: {main: {logs: {requests: true, stdout:"
        " true}}})"
    )


def _show(found: Mapping[str, ModelTraffic]) -> None:
    one = next(iter(found.values()))
    rate = f"p{one.percentile:g}"
    columns = (
        "model",
        "hours",
        "requests",
        "rejected",
        "req/s",
        rate,
        "dispersion",
        "input",
        "p95",
        "output",
        "p95",
        "cached",
    )
    table = Table(columns[0], *(Column(name, justify="right") for name in columns[1:]))
    for name, each in found.items():
        table.add_row(
            Text(name),
            f"{(each.last - each.first).total_seconds() / 3600:.1f}",
            f"{each.requests:,}",
            f"{each.rejected:,}",
            f"{each.mean_rate:.3g}",
            f"{each.peak_rate:.3g}",
            f"{each.dispersion:.3g}",
            _format_tokens(each.input_tokens),
            _format_tokens(each.input_tokens_p95),
            _format_tokens(each.output_tokens),
            _format_tokens(each.output_tokens_p95),
            "-" if each.cached_share is None else f"{each.cached_share:.0%}",
        )
    console().print(table)
    for name, each in found.items():
        if each.hourly_rates:
            console().print(Text(f"{name}, hours 0 to 23 UTC: {_draw(each.hourly_rates)}"))


def _format_tokens(tokens: float | None) -> str:
    return "-" if tokens is None else f"{tokens:,.0f}"


def _draw(rates: tuple[float, ...]) -> str:
    most = max(rates)
    return "".join(_BARS[min(int(rate / most * len(_BARS)), len(_BARS) - 1)] for rate in rates)
