"""`rayhelm bench`: the speed of a live endpoint, beside the plan."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from rayhelm.cli.bench_table import build_bench_table
from rayhelm.cli.files import check_writable, write_file
from rayhelm.cli.output import Format, FormatOption, console, show_progress, warn
from rayhelm.cli.up import open_state
from rayhelm.errors import FleetError, Problem, UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.load import load_fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.fleet.sources import find_source_kind
from rayhelm.fleet.web_url import split_web_url
from rayhelm.live.bench.compare import LoadComparison, build_measurement, choose_concurrency, compare, merge_models
from rayhelm.live.bench.endpoint import check_endpoint
from rayhelm.live.bench.load import BenchLoad, check_vllm, open_client
from rayhelm.live.probe.store import format_measurements, read_file
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet

__all__ = ["bench_command"]

_REQUESTS_PER_SLOT = 4
_LEAST_REQUESTS = 10
_MOST = 100_000


def bench_command(
    fleet: Annotated[Path, typer.Argument(metavar="FLEET", help="The fleet file, or a folder with `fleet.yaml`.")],
    url: Annotated[str, typer.Option(metavar="URL", help="The endpoint, without `/v1`: https://llm.example.com.")],
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="Model of the fleet file; default: the only one with the task chat.")
    ] = "",
    key_file: Annotated[
        Path | None, typer.Option("--key-file", metavar="FILE", help="File with an API key of the gateway.")
    ] = None,
    concurrency: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            max=_MOST,
            help="Requests in flight; can be repeated. Default: 1, the planned load, and the most that the plan takes.",
        ),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST, help="Requests of each load; default: 4 for each one in flight, at least 10."),
    ] = None,
    input_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of each prompt; default: those of the fleet file's traffic.")
    ] = None,
    output_tokens: Annotated[
        int | None, typer.Option(min=2, help="Tokens of each response; default: those of the fleet file's traffic.")
    ] = None,
    replicas: Annotated[int | None, typer.Option(min=1, help="Replicas that run; default: those of the plan.")] = None,
    tokenizer: Annotated[
        str, typer.Option(help="Folder or hub name of the tokenizer; default: the source of the model.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Add the figures to this file of measurements."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Measure a live endpoint with vLLM's load generator: time to first token, time per output token and throughput,
    beside the 90 % intervals of the estimate.

    Prompts are random tokens, so that no prefix is cached. With `-o` the next plan uses the figures: `measurements:
    FILE` in the fleet file. Ends with 1 if a request failed, and with 3 without vLLM.
    """
    _check_url(url)
    key = _read_key(key_file)
    if output:
        check_writable(output, "rayhelm bench FLEET --url URL -o FILE")
        read_file(output)  # a file of another kind is not overwritten
    loaded = load_fleet(find_fleet_file(fleet))
    plan = plan_fleet(loaded)
    name = _choose_model(plan, model)
    chosen, traffic = plan.models[name], plan.declared.models[name].traffic
    if output:
        _refuse_mixture(plan, name)
        _refuse_roles(plan, name)
        _refuse_stand_in(url)
    prompt = input_tokens or (traffic.input_tokens if traffic else 512)
    answer = output_tokens or max(2, (traffic.output_tokens if traffic else None) or 128)
    _check_context(prompt, answer, chosen)
    _check_tokenizer(tokenizer, chosen)
    check_vllm()
    check_endpoint(url, chosen.served_as, key)
    found: list[LoadComparison] = []
    ended: FleetError | KeyboardInterrupt | None = None
    try:
        with (
            show_progress(format) as show,
            open_client(url, chosen.served_as, tokenizer or chosen.source, key) as client,
        ):
            for slots in sorted(set(concurrency or choose_concurrency(chosen))):
                load = BenchLoad(slots, requests or max(_LEAST_REQUESTS, slots * _REQUESTS_PER_SLOT), prompt, answer)
                show(_describe(load))
                result = client.measure(load, seed=slots)
                found.append(compare(result, chosen, replicas or chosen.replicas))
                if not result.requests:
                    break
    except (FleetError, KeyboardInterrupt) as error:
        ended = error  # the loads before are shown and written first
    if found or not ended:
        _show(found, name, chosen, format)
    if output and any(each.result.tpot_s for each in found):
        _write(output, found, plan, name, plan.declared.models[name], replicas or chosen.replicas)
    if ended:
        raise ended
    if output and not any(each.result.tpot_s for each in found):
        raise FleetError(Problem(f"nothing was measured, so {output} is as it was"))
    if any(each.result.failed for each in found):
        raise typer.Exit(FleetError.exit_code)


def _check_tokenizer(tokenizer: str, chosen: ModelPlan) -> None:
    """The load generator reads a tokenizer from a hub or a folder."""
    if not tokenizer and find_source_kind(chosen.source) not in ("hub", "path"):
        raise UsageError(
            f"the load generator does not read a tokenizer from {chosen.source}; give a folder with its files, or the"
            " hub id of a model with the same one: --tokenizer Qwen/Qwen3-8B"
        )


def _check_url(url: str) -> None:
    parts = split_web_url(url)
    if not parts:
        raise UsageError(f"--url `{url}` is not an address; write it like `--url https://llm.example.com`")
    if parts.path.rstrip("/").endswith("/v1"):
        raise UsageError(f"--url `{url}` ends with /v1, which is added; write `--url {url.rstrip('/')[:-3]}`")


def _read_key(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--key-file {path}: {getattr(error, 'strerror', None) or error}") from None
    if not key or any(character.isspace() for character in key):
        raise UsageError(f"--key-file {path}: it must hold one API key, and nothing else")
    return key


def _choose_model(plan: Plan, wanted: str) -> str:
    chats = [name for name, each in plan.models.items() if each.task == "chat"]
    if wanted and wanted not in plan.models:
        raise UsageError(f"--model `{wanted}` is not in the fleet file; {did_you_mean(wanted, plan.models)}")
    if wanted and wanted not in chats:
        raise UsageError(
            f"--model `{wanted}` has the task {plan.models[wanted].task}, and the load is of chat requests;"
            f" measurable: {', '.join(chats) or 'none'}"
        )
    if wanted or len(chats) == 1:
        return wanted or chats[0]
    if not chats:
        raise UsageError("no model of the fleet file has the task chat, and the load is of chat requests")
    raise UsageError(f"--model is missing; one of: {', '.join(chats)}")


def _refuse_roles(plan: Plan, name: str) -> None:
    if plan.models[name].prefill_decode:
        raise UsageError(
            f"`{name}` computes prompts and answers on different replicas, and a measurement has the speed of replicas"
            " that do both. Measure without -o"
        )


def _refuse_mixture(plan: Plan, name: str) -> None:
    served = plan.models[name].served_as
    others = [other for other, each in plan.models.items() if each.served_as == served and other != name]
    if others:
        raise UsageError(
            f"`{name}` and {' and '.join(others)} are both served as `{served}`: the figures would be of a mixture."
            " Measure without -o, or give the address of one RayService and only its model"
        )


def _refuse_stand_in(url: str) -> None:
    """A tiny model on the CPU says nothing about a GPU."""
    endpoint = open_state(None).read()
    if endpoint and endpoint.stand_in and urlsplit(endpoint.url).netloc == urlsplit(url).netloc:
        raise UsageError(f"{url} is an endpoint of `rayhelm up` with tiny models: no plan can use its figures")


def _check_context(prompt: int, answer: int, plan: ModelPlan) -> None:
    if prompt + answer > plan.max_model_len:
        raise UsageError(
            f"{prompt} input and {answer} output tokens are more than max_model_len {plan.max_model_len}; give fewer"
            " with --input-tokens and --output-tokens"
        )


def _describe(load: BenchLoad) -> str:
    return f"{load.requests} requests, {load.concurrency} in flight"


def _show(found: list[LoadComparison], name: str, plan: ModelPlan, format: Format) -> None:
    if format is Format.json:
        loads = [
            asdict(each.result)
            | {"expected": each.expected.model_dump(mode="json") if each.expected else None, "why_not": each.why_not}
            for each in found
        ]
        print(json.dumps({"model": name, "served_as": plan.served_as, "loads": loads}, indent=2))
        return
    console().print(build_bench_table(found, name))
    for each in found:
        for reason, count in each.result.errors.items():
            warn(f"{_describe(each.result.load)}: {count} failed: {reason}")
        if each.why_not:
            warn(f"{_describe(each.result.load)}: no estimate: {each.why_not}")


def _write(output: Path, found: list[LoadComparison], plan: Plan, name: str, spec: ModelSpec, replicas: int) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    rows = [
        build_measurement(each.result, plan.models[name], spec, replicas, plan.vllm_version, now)
        for each in found
        if each.result.tpot_s
    ]
    merged = merge_models(read_file(output), name, rows)
    write_file(output, format_measurements(merged), "rayhelm bench FLEET --url URL -o FILE")
    warn_unused = [f"{row.shape}: not used by plans, {row.why_not}" for row in rows if row.why_not]
    for text in warn_unused:
        warn(text)
    print(f"{output} is written; the plan uses it when the fleet file has `measurements: {output.name}`")
