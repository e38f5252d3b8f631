"""`rayhelm images`: every image of a fleet, and how to mirror them."""

import enum
import json
from typing import TYPE_CHECKING, Annotated

import typer

from rayhelm.cli.fleet_commands import FleetArgument
from rayhelm.cli.output import Format, FormatOption, console, warn
from rayhelm.fleet.find_file import find_fleet_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from rayhelm.deploy.images.collect import ImageOfFleet
    from rayhelm.deploy.render.files import Rendered

__all__ = ["images_command"]

NO_DIGEST = "no digest known"


class CopyProgram(enum.StrEnum):
    """Programs that copy images between registries."""

    skopeo = "skopeo"
    crane = "crane"


class MirrorPart(enum.StrEnum):
    """Parts of the text output with `--mirror`."""

    commands = "commands"
    values = "values"


def images_command(
    fleet: FleetArgument,
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="REGISTRY",
            help="Registry to copy the images to, for clusters that reach no other one: `registry.example/mirror`.",
        ),
    ] = None,
    tool: Annotated[CopyProgram, typer.Option(help="Program of the commands that copy.")] = CopyProgram.skopeo,
    only: Annotated[
        MirrorPart | None,
        typer.Option(
            help="Print one part alone, for a file: `commands` that copy, or `values` of the fleet file.",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[str, typer.Option(help="Only the images of one cluster; default: of all.")] = "",
    format: FormatOption = Format.text,
) -> None:
    """List every image that the charts render for a fleet, with its digest as far as it is known.

    With `--mirror`, also print the commands that copy the images to a registry of yours, and the keys of the fleet file
    that name the copies. Asks no registry. Needs helm. Images of operators (KubeRay, the GPU operator) are in their own
    charts, and not in the list.
    """
    from rayhelm.deploy.images.collect import collect_images
    from rayhelm.deploy.images.mirror import build_mirror_values, check_mirror, list_copy_commands
    from rayhelm.deploy.render.files import render_fleet
    from rayhelm.errors import UsageError

    if only and mirror is None:
        raise UsageError(f"`--only {only}` needs a registry. fix: --only {only} --mirror registry.example/mirror")
    if only and format is Format.json:
        raise UsageError("`--only` is for text: JSON has all parts")
    target = "" if mirror is None else check_mirror(mirror)
    rendered = render_fleet(find_fleet_file(fleet))
    images = collect_images(rendered, cluster)
    commands = list_copy_commands(images, target, tool.value) if target else []
    values = build_mirror_values(images, target) if target else {}
    warnings = _list_warnings(images, rendered)
    if format is Format.json:
        record = {"images": [_as_json(each) for each in images], "warnings": warnings}
        print(json.dumps(record | ({"commands": commands, "values": values} if target else {}), indent=2))
        return
    if not only:
        console().print(_build_table(images))
    if target:
        _print_mirror(commands, values, only)
    for text in warnings:
        warn(text)


def _print_mirror(commands: "Sequence[str]", values: dict[str, object], only: MirrorPart | None) -> None:
    import yaml

    if only is not MirrorPart.values:
        print("\n".join(commands))
    if only is None:
        print()
    if only is not MirrorPart.commands:
        print("# Merge into the fleet file: yq -i '. *= load(\"mirror.yaml\")' fleet.yaml")
        print(yaml.safe_dump(values, sort_keys=False, width=110), end="")


def _list_warnings(images: "Sequence[ImageOfFleet]", rendered: "Rendered") -> list[str]:
    found = []
    if open_images := [each for each in images if not each.image.digest]:
        first = open_images[0].image
        count = "1 image has" if len(open_images) == 1 else f"{len(open_images)} images have"
        found.append(
            f"{count} no known digest, and the content of a tag can change. Print the first one: crane digest {first}"
        )
    if operators := rendered.loaded.fleet.gitops and rendered.loaded.fleet.gitops.operators:
        found.append(f"the images of {', '.join(operators)} are in the charts of those projects, and not in this list")
    return found


def _as_json(each: "ImageOfFleet") -> dict[str, object]:
    return {
        "image": str(each.image),
        "repository": each.image.full_repository,
        "tag": each.image.tag,
        "digest": each.image.digest or None,
        "releases": list(each.releases),
        "keys": [".".join(key.path) for key in each.keys],
    }


def _build_table(images: "Sequence[ImageOfFleet]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("image", "tag", "digest", "releases", "key of the fleet file"):
        table.add_column(column, overflow="fold")
    for each in images:
        keys = "\n".join(".".join(key.path) for key in each.keys) or "-"
        cells = (each.image.repository, each.image.tag or "-", each.image.digest or NO_DIGEST, "\n".join(each.releases))
        table.add_row(*map(Text, (*cells, keys)))
    return table
