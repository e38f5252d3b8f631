"""`rayhelm catalog`: the GPUs, MIG profiles, models and networks that fleets can name, and models that vLLM builds."""

import enum
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer
import yaml
from rich.table import Table
from rich.text import Text

from rayhelm.cli.files import write_file
from rayhelm.cli.output import Format, FormatOption, console
from rayhelm.errors import UsageError
from rayhelm.facts import load_catalog
from rayhelm.facts.closed import Closed
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.mig import MigTable
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.network import NetworkKind
from rayhelm.facts.tasks import Task
from rayhelm.facts.tensors import count_weights
from rayhelm.run.local.model_record import build_record

__all__ = ["catalog_command"]


class CatalogKind(enum.StrEnum):
    """Kinds of catalog entries."""

    gpus = "gpus"
    mig = "mig"
    models = "models"
    networks = "networks"
    add = "add"


_SIZES = (1, 2, 4, 8)


def catalog_command(
    what: Annotated[CatalogKind, typer.Argument(help="`gpus`, `mig`, `models` or `networks`; or `add`.")],
    config: Annotated[
        Path | None, typer.Argument(help="With `add`: the config.json of a model, or its folder.")
    ] = None,
    tp: Annotated[
        list[int] | None,
        typer.Option(min=1, max=64, help="With `add`: tensor parallel size, repeated; default: 1, 2, 4 and 8."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="With `add`: data file to write; default: beside the config.json."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="With `add`: name of the model in plans.")] = None,
    context: Annotated[
        int | None, typer.Option(min=16, max=10_000_000, help="With `add`: longest prompt and answer, tokens.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="With `add`: task of a model that rayhelm cannot read itself; default: chat."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """List the entries of the catalog that a fleet file can name, with the figures that plans use.

    `add CONFIG` builds the model of a config.json with vLLM, which has to be installed, and writes its data file. Name
    the file as `architecture` of the model in the fleet file, or as `--config` of `rayhelm fit` and `estimate`.
    """
    if what is CatalogKind.add:
        _add(config, tp or list(_SIZES), output, name, context, task or "chat", format)
        return
    if config or tp or output or name or context or task:
        raise UsageError(f"`rayhelm catalog {what}` takes no CONFIG and none of its options: they are for `add`")
    facts = load_catalog()
    listings = {
        CatalogKind.gpus: (facts.gpus, _gpus),
        CatalogKind.mig: (facts.mig_tables, _mig),
        CatalogKind.models: (facts.models, _models),
        CatalogKind.networks: (facts.networks, _networks),
    }
    list_entries, make_rows = listings[what]
    entries = list_entries()
    if format is Format.json:
        print(json.dumps([_describe(entry) for entry in entries], indent=2))
        return
    _print_table(make_rows(entries))
    if what is CatalogKind.gpus:
        _print_limits(entries)


def _describe(entry: Closed) -> dict[str, object]:
    limit = {"limit": entry.limit} if isinstance(entry, GpuKind) else {}
    return entry.model_dump(mode="json") | limit


def _print_limits(entries: Sequence[Closed]) -> None:
    """Print the GPUs that pools cannot have, or that are planned only partly, by the reason."""
    gpus: dict[str, list[str]] = {}
    for gpu in entries:
        if isinstance(gpu, GpuKind) and gpu.limit:
            gpus.setdefault(gpu.limit, []).append(gpu.id)
    for limit, names in gpus.items():
        console().print(f"{', '.join(names)}: {limit}", soft_wrap=True, markup=False, highlight=False)


def _add(
    config: Path | None,
    sizes: list[int],
    output: Path | None,
    name: str | None,
    context: int | None,
    task: str,
    format: Format,
) -> None:
    if config is None:
        raise UsageError("`rayhelm catalog add` needs the config.json of a model, or its folder")
    if task not in get_args(Task):
        raise UsageError(f"`{task}` is not one of {', '.join(get_args(Task))}")
    found = build_record(config, sizes, name=name, context=context, task=task)
    folder = config if config.is_dir() else config.parent
    path = output or folder / "rayhelm-model.yaml"
    plain = found.record.model_dump(mode="json", exclude_defaults=True)
    text = "# Written by `rayhelm catalog add`.\n" + yaml.safe_dump(plain, sort_keys=False, width=120)
    write_file(path, text, "catalog add")
    if format is Format.json:
        print(json.dumps({"file": str(path), "model": plain, "refused": found.refused}, indent=2))
        return
    built = found.record.built
    assert built is not None
    _print_table(
        [
            {
                "TP": rank.tensor_parallel_size,
                "weights GiB": round(rank.weights / 2**30, 3),
                "KV cache KiB/token": round(rank.kv_per_token / 2**10, 3),
            }
            for rank in built.ranks
        ]
    )
    for size, why in found.refused.items():
        console().print(f"TP {size}: {why}", style="yellow", markup=False, highlight=False)
    cached = "rayhelm reads this architecture itself: the weights are those of vLLM, and the rest is rayhelm's"
    only = "rayhelm cannot read this architecture: working memory and speed are those of a dense model of this size"
    console().print(cached if found.is_read else only, markup=False, highlight=False)
    console().print(f"written  {path}; use it as `architecture: {path}`", markup=False, highlight=False)


def _print_table(rows: Sequence[dict[str, object]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(
            *(
                Text("?" if value is None else f"{value:g}" if isinstance(value, float) else str(value))
                for value in row.values()
            )
        )
    console().print(table)


def _gpus(entries: Sequence[Closed]) -> list[dict[str, object]]:
    return [
        {
            "gpu": gpu.id,
            "usable GiB": gpu.usable_gib,
            "GB/s": gpu.memory_bandwidth_gb_per_s,
            "BF16 TFLOP/s": gpu.bf16_tflops,
            "link": gpu.link.kind,
            "resource": gpu.resource,
            "USD/h": gpu.price.on_demand,
        }
        for gpu in entries
        if isinstance(gpu, GpuKind)
    ]


def _mig(entries: Sequence[Closed]) -> list[dict[str, object]]:
    return [
        {
            "GPUs": table.id,
            "profile": profile,
            "GiB": cut.gib,
            "compute slices": f"{cut.compute}/{table.compute_slices}",
            "max per GPU": table.most(profile),
        }
        for table in entries
        if isinstance(table, MigTable)
        for profile, cut in table.profiles.items()
    ]


def _models(entries: Sequence[Closed]) -> list[dict[str, object]]:
    return [
        {
            "model": model.id,
            "tasks": ", ".join(model.tasks),
            "parameters, billions": round(count_weights(model).parameters / 1e9, 2),
            "weights, GiB": round(count_weights(model).bytes / 2**30, 1),
            "context": model.max_context,
        }
        for model in entries
        if isinstance(model, Checkpoint)
    ]


def _networks(entries: Sequence[Closed]) -> list[dict[str, object]]:
    return [
        {
            "network": network.id,
            "kind": network.kind,
            "Gbit/s": network.bandwidth_gbit_per_s,
            "effective GB/s": network.effective_gb_per_s,
        }
        for network in entries
        if isinstance(network, NetworkKind)
    ]
