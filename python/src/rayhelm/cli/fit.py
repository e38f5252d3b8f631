"""`rayhelm fit`: check whether a model fits a GPU, with the memory accounting of vLLM."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from rayhelm.cli.output import Format, FormatOption, console
from rayhelm.errors import Fix, FleetError, Problem, UsageError
from rayhelm.facts import load_catalog
from rayhelm.facts.huggingface import read_config
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.engine_settings import EngineSettings
from rayhelm.planner.memory.fit import Fit, fit
from rayhelm.planner.memory.input_limits import MOST_RANKS, MOST_TOKENS
from rayhelm.planner.shape import ReplicaShape

__all__ = ["fit_command"]

Found = TypeVar("Found")


def fit_command(
    gpu: Annotated[
        list[str], typer.Option("--gpu", help="GPU id; once per pipeline stage if the stages have different GPUs.")
    ],
    model: Annotated[str | None, typer.Option(help="Model of the catalog or of the Hugging Face hub.")] = None,
    config: Annotated[str | None, typer.Option(help="Path of a Hugging Face config.json instead of --model.")] = None,
    tp: Annotated[int, typer.Option(min=1, max=MOST_RANKS, help="Tensor parallel size.")] = 1,
    pp: Annotated[
        int | None, typer.Option(min=1, max=MOST_RANKS, help="Pipeline parallel size; default: as many as --gpu.")
    ] = None,
    gpu_memory_utilization: Annotated[
        float | None,
        typer.Option(min=0.01, max=1, help="Share of each GPU that vLLM may use; default: the one of vLLM."),
    ] = None,
    max_model_len: Annotated[
        int | None, typer.Option(min=1, max=MOST_TOKENS, help="Context, tokens; default: the one of the model.")
    ] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(min=1, max=MOST_TOKENS, help="Sequences in a batch; default: the one of vLLM.")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(min=1, max=MOST_TOKENS, help="Tokens of one engine step; default: the one of vLLM.")
    ] = None,
    kv_cache_dtype: Annotated[str, typer.Option(help="auto, bfloat16, float16 or fp8.")] = "auto",
    decode_context_parallel_size: Annotated[
        int, typer.Option(min=1, max=MOST_RANKS, help="TP ranks over which the cache of a request is spread.")
    ] = 1,
    ep: Annotated[bool, typer.Option("--ep", help="Give each GPU whole experts (enable_expert_parallel).")] = False,
    enforce_eager: Annotated[bool, typer.Option("--enforce-eager", help="No CUDA graphs, no torch.compile.")] = False,
    moe_backend: Annotated[
        str, typer.Option(help="Kernel of fused experts, such as marlin; auto: the one that vLLM takes on the GPU.")
    ] = "auto",
    vllm_version: Annotated[
        str | None, typer.Option(help="Version of vLLM whose accounting is used; default: the pinned one.")
    ] = None,
    gpu_fraction: Annotated[float, typer.Option(min=0.01, max=1, help="Share of each GPU; 1 is a whole GPU.")] = 1.0,
    layers: Annotated[
        str | None, typer.Option(help="Layers of each stage, such as 20,28; default: the split of vLLM.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Check whether a model fits a GPU: each term of its memory, and what would make it fit."""
    checkpoint, partition = _model(model, config), _partition(layers)
    gpus = [_name("--gpu", partial(load_catalog().gpu, name)) for name in gpu]
    try:
        answer = fit(
            checkpoint,
            gpus,
            ReplicaShape(tp, pp or len(gpus), has_expert_parallel=ep, partition=partition),
            EngineSettings(
                utilization=gpu_memory_utilization,
                fraction=gpu_fraction,
                context=max_model_len,
                seqs=max_num_seqs,
                tokens=max_num_batched_tokens,
                kv_cache_dtype=kv_cache_dtype,
                eager=enforce_eager,
                dcp=decode_context_parallel_size,
                moe_backend=moe_backend,
            ),
            vllm_version=vllm_version,
            facts=load_catalog(),
        )
    except FleetError as error:
        raise UsageError("\n".join(map(_as_option, error.problems))) from None
    named = tuple(explained for name in dict.fromkeys(gpu) if (explained := load_catalog().explain_gpu_name(name)))
    answer = answer.model_copy(update={"notes": (*named, *answer.notes)})
    if format is Format.json:
        print(answer.model_dump_json(indent=2))
        return
    _show(answer)


def _model(model: str | None, config: str | None) -> Checkpoint:
    if model and not config:
        return _name("--model", lambda: read_config(model))
    if config and not model:
        return read_config(Path(config))
    raise UsageError("give either --model or --config")


def _partition(layers: str | None) -> tuple[int, ...] | None:
    if layers is None:
        return None
    try:
        return tuple(int(part) for part in layers.strip("[] ").split(","))
    except ValueError:
        raise UsageError(f"`--layers {layers}` is not a list of numbers; write it like `--layers 20,28`") from None


def _name(option: str, find: Callable[[], Found]) -> Found:
    """Call `find` for the name in an option. Raises UsageError with the nearest names if there is none."""
    try:
        return find()
    except FleetError as error:
        (problem, *_) = error.problems
        if problem.file:
            raise
        names = [fix.value for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix) and fix.value]
        advice = [fix.why for fix in problem.alternatives if fix.is_advice]
        hint = f"; write for example {' or '.join(f'`{option} {name}`' for name in names)}" if names else ""
        raise UsageError("\n".join([f"{problem.message}{hint}", *advice])) from None


def _as_option(problem: Problem) -> str:
    """The message and the fix of a wrong setting, as an option of this command."""
    if not isinstance(problem.fix, Fix) or problem.fix.command or not problem.fix.path:
        return str(problem)
    value = problem.fix.value
    written = ",".join(map(str, value)) if isinstance(value, list) else value
    why = f" ({problem.fix.why})" if problem.fix.why else ""
    return f"{problem.message}; write `--{problem.fix.path.replace('_', '-')} {written}`{why}"


def _show(answer: Fit) -> None:
    """Print names and sentences as Text, because the name of a model may contain markup of rich."""
    out = console()
    out.print(Text.assemble((answer.model, "bold"), " on ", (answer.gpu, "bold"), ": ", _verdict(answer)))
    table = Table(show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    for name, value in _rows(answer):
        table.add_row(name, value)
    out.print(table)
    if answer.stages:
        out.print(_stages(answer))
    out.print(Text(answer.reason))
    if answer.fits and not answer.fits_every_order:
        out.print("[yellow]Fits only in this order of stages, and vLLM orders the ranks itself.[/]")
    listed = (("What would fit:", answer.fixes), ("Note:", answer.notes), ("Unknown:", answer.unknown))
    for heading, lines in listed:
        if lines:
            out.print(heading)
        for line in lines:
            out.print(Text(f"  {line}"))


def _verdict(answer: Fit) -> tuple[str, str]:
    if not answer.is_measured_version:
        return "not safe to call", "red"
    return ("tight", "yellow") if answer.tight else ("fits", "green") if answer.fits else ("does not fit", "red")


def _rows(answer: Fit) -> list[tuple[str, str]]:
    band = f" ± {answer.error_gib:.1f}" if answer.error_gib is not None else ""
    experts = ", EP" if answer.expert_parallel else ""
    return [
        ("split", f"TP {answer.tensor_parallel_size}, PP {answer.pipeline_parallel_size}{experts}"),
        ("gpu_memory_utilization", f"{answer.gpu_memory_utilization:.2f}"),
        ("max_model_len", f"{answer.max_model_len:,}"),
        ("max_num_seqs", f"{answer.max_num_seqs:,}"),
        ("max_num_batched_tokens", f"{answer.max_num_batched_tokens:,}"),
        ("weights", _gib(answer.weights_gib_per_gpu)),
        ("activations", _gib(answer.activation_gib)),
        ("non-torch", _gib(answer.non_torch_gib)),
        ("CUDA graphs", _gib(answer.cuda_graph_gib)),
        ("left for the cache", _gib(answer.kv_available_gib_per_gpu) + band),
        ("cache", "unknown" if answer.kv_cache_tokens is None else f"{answer.kv_cache_tokens:,} tokens"),
        ("concurrency", "unknown" if answer.max_concurrency is None else f"{answer.max_concurrency:.2f}"),
        ("constants of vLLM", answer.vllm_version),
    ]


def _stages(answer: Fit) -> object:
    table = Table("stage", "GPU", "layers", "weights", "cache")
    for number, stage in enumerate(answer.stages, start=1):
        table.add_row(str(number), stage.gpu, str(stage.layers), _gib(stage.weights_gib), _gib(stage.kv_gib))
    return table


def _gib(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} GiB"
