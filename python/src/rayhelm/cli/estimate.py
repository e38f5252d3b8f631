"""`rayhelm estimate`: time to first token, time per output token and throughput of one shape, with intervals."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from rayhelm.cli.output import Format, FormatOption, console
from rayhelm.errors import FleetError, UsageError
from rayhelm.facts.engine_arguments import load_argument_schema
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.planner.memory.input_limits import MOST_RANKS, MOST_TOKENS
from rayhelm.planner.speed.estimate import Interval, SpeedEstimate
from rayhelm.planner.speed.query import SpeedQuery, answer_lines, answer_query

__all__ = ["estimate_command"]


def estimate_command(
    model: Annotated[str | None, typer.Option(help="Model of the catalog or of the Hugging Face hub.")] = None,
    config: Annotated[str | None, typer.Option(help="Path of a Hugging Face config.json instead of --model.")] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU id.")] = None,
    tp: Annotated[int, typer.Option(min=1, max=MOST_RANKS, help="Tensor parallel size.")] = 1,
    pp: Annotated[int, typer.Option(min=1, max=MOST_RANKS, help="Pipeline parallel size.")] = 1,
    dp: Annotated[int, typer.Option(min=1, max=MOST_RANKS, help="Data parallel size.")] = 1,
    ep: Annotated[bool, typer.Option("--ep", help="Split the experts over the GPUs of all ranks.")] = False,
    network: Annotated[
        str | None, typer.Option(help="Network between pipeline stages; default: all stages on one host.")
    ] = None,
    input_tokens: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Mean tokens of a prompt.")] = 1024,
    output_tokens: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Mean tokens of a response.")] = 256,
    concurrency: Annotated[float, typer.Option(min=0.01, max=1e6, help="Requests in flight in all ranks.")] = 1,
    engine: Annotated[list[str] | None, typer.Option(help="Argument of vLLM as KEY=VALUE; can be repeated.")] = None,
    vllm_version: Annotated[str | None, typer.Option(help="Version of vLLM; default: the pinned one.")] = None,
    batch: Annotated[
        Path | None, typer.Option(help="File with one query per line as JSON; - reads standard input.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Estimate time to first token, time per output token and throughput of one shape, each as a 90 % interval."""
    if batch is not None:
        _answer_batch(batch)
        return
    if gpu is None:
        raise UsageError("--gpu is missing: the GPU id, such as `--gpu H100-SXM-80GB`")
    query = SpeedQuery(
        model=model,
        config=config,
        gpu=gpu,
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=dp,
        expert_parallel=ep,
        network=network,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=concurrency,
        engine_version=vllm_version,
        engine=_read_engine(engine or [], is_pinned=vllm_version is None),
    )
    try:
        answer = answer_query(query)
    except FleetError as error:
        if any(problem.file for problem in error.problems):
            raise
        raise UsageError("\n".join(map(str, error.problems))) from None
    if format is Format.json:
        print(answer.model_dump_json(indent=2))
        return
    _show(answer)


def _answer_batch(path: Path) -> None:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(f"--batch {path}: {error.strerror or error}") from None
    # Only a line feed ends a line: strings of JSON may contain other separators. Bytes that are not UTF-8 make one line
    # wrong, and not the file.
    lines = data.decode("utf-8-sig", errors="replace").removesuffix("\n").split("\n")
    for line in answer_lines(lines if data else []):
        print(line)


def _read_engine(given: list[str], *, is_pinned: bool) -> dict[str, Any]:
    """Return the arguments. Their names are those of the pinned version of vLLM; of another one they are not known."""
    known = load_argument_schema()["properties"] if given and is_pinned else {}
    arguments: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"`--engine {pair}` is not KEY=VALUE; write it like `--engine max_num_seqs=256`")
        if known and key not in known:
            raise UsageError(f"--engine: vLLM has no argument `{key}`; {did_you_mean(key, known)}".rstrip("; "))
        try:
            arguments[key] = json.loads(value)
        except json.JSONDecodeError:
            arguments[key] = value
    return arguments


def _show(answer: SpeedEstimate) -> None:
    table = Table("", "estimate", "90 % interval")
    table.add_row("time to first token", *_format_seconds(answer.ttft_s))
    table.add_row("time per output token", *_format_seconds(answer.tpot_s))
    rate = answer.output_tokens_per_second
    table.add_row("output tokens per second", f"{rate.mid:,.0f}", f"{rate.low:,.0f} to {rate.high:,.0f}")
    console().print(table)
    console().print(Text(f"basis: {answer.basis} · bound by: {answer.bound_by} · running: {answer.running:g}"))
    for label, lines in (("source", answer.sources), ("note", answer.notes)):
        for line in lines:
            console().print(Text(f"{label}: {line}"))


def _format_seconds(interval: Interval) -> tuple[str, str]:
    scale, unit = (1.0, "s") if interval.mid >= 1 else (1e3, "ms")
    low, mid, high = (_format_figure(each * scale) for each in (interval.low, interval.mid, interval.high))
    return f"{mid} {unit}", f"{low} to {high} {unit}"


def _format_figure(value: float) -> str:
    """Return three significant digits without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
