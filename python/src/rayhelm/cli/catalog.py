"""`rayhelm catalog`: the GPUs, MIG profiles, models and networks that fleets can name."""

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from rayhelm.cli.output import Format, FormatOption, console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rayhelm.closed import Closed

__all__ = ["catalog_command"]


class CatalogKind(enum.StrEnum):
    """Kinds of catalog entries."""

    gpus = "gpus"
    mig = "mig"
    models = "models"
    networks = "networks"


def catalog_command(
    what: Annotated[CatalogKind, typer.Argument(help="`gpus`, `mig`, `models` or `networks`.")],
    format: FormatOption = Format.text,
) -> None:
    """List the entries of the catalog that a fleet file can name, with the figures that plans use."""
    import json

    from rayhelm.catalog import load_catalog

    known = load_catalog()
    listings = {
        CatalogKind.gpus: (known.gpus, _gpus),
        CatalogKind.mig: (known.mig_tables, _mig),
        CatalogKind.models: (known.models, _models),
        CatalogKind.networks: (known.networks, _networks),
    }
    list_entries, make_rows = listings[what]
    entries = list_entries()
    if format is Format.json:
        print(json.dumps([entry.model_dump(mode="json") for entry in entries], indent=2))
        return
    _print_table(make_rows(entries))


def _print_table(rows: "Sequence[dict[str, object]]") -> None:
    from rich.table import Table
    from rich.text import Text

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


def _gpus(entries: "Sequence[Closed]") -> "list[dict[str, object]]":
    from rayhelm.catalog.gpu import GpuKind

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


def _mig(entries: "Sequence[Closed]") -> "list[dict[str, object]]":
    from rayhelm.catalog.mig import MigTable

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


def _models(entries: "Sequence[Closed]") -> "list[dict[str, object]]":
    from rayhelm.catalog.model import Checkpoint
    from rayhelm.catalog.tensors import count_weights

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


def _networks(entries: "Sequence[Closed]") -> "list[dict[str, object]]":
    from rayhelm.catalog.network import NetworkKind

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
