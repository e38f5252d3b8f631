"""`rayhelm images`: every image of a fleet, and how to mirror them."""

import enum
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rayhelm.cli.files import replace_file
from rayhelm.cli.output import FleetArgument, Format, FormatOption, console, warn
from rayhelm.deploy.images.collect import ImageOfFleet, collect_images
from rayhelm.deploy.images.fill import fill_digests, list_left_out, list_without_digest
from rayhelm.deploy.images.mirror import build_mirror_values, check_mirror, list_copy_commands
from rayhelm.deploy.images.registry import read_digests
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.errors import UsageError
from rayhelm.fleet.document import parse_document, read_text
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.load import parse_fleet

__all__ = ["images_command"]

NO_DIGEST = "no digest known"
_LEFT_OUT = (
    "A digest would replace the tag in `version`, and the GPU operator adds the operating system to the driver's tag"
)


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
    fill: Annotated[
        bool,
        typer.Option(
            "--fill",
            help="Ask the registries for the digests of images by tag alone, and write them into the fleet file.",
        ),
    ] = False,
    cluster: Annotated[str, typer.Option(help="Only the images of one cluster; default: of all.")] = "",
    format: FormatOption = Format.text,
) -> None:
    """List every image that the charts render for a fleet, with its digest as far as it is known.

    With `--mirror`, also print the commands that copy the images to a registry of yours, and the keys of the fleet file
    that name the copies. Asks no registry without `--fill`, which writes digests into the fleet file: comments, tags
    and all else stay as they are. A registry that needs a login gets the one of `docker login`. Needs helm. Images of
    operators (KubeRay, the GPU operator) are in their own charts, and not in the list.
    """
    if only and mirror is None:
        raise UsageError(f"`--only {only}` needs a registry. fix: --only {only} --mirror registry.example/mirror")
    if only and format is Format.json:
        raise UsageError("`--only` is for text: JSON has all parts")
    target = "" if mirror is None else check_mirror(mirror)
    file = find_fleet_file(fleet)
    if fill and (mirror is not None or format is Format.json):
        raise UsageError(
            "`--fill` changes the fleet file, and prints the keys: call it alone, then again with --mirror"
        )
    if fill:
        _fill(file, cluster)
        return
    rendered = render_fleet(file)
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


def _fill(file: Path, cluster: str) -> None:
    # First: replace_file refuses an edit since then.
    before = read_text(file)
    images = collect_images(render_fleet(file), cluster)
    digests = read_digests(list_without_digest(images))
    text, keys = fill_digests(before, str(file), images, digests)
    parse_fleet(parse_document(text, str(file)))
    for key in list_left_out(images):
        print(f"{key}: left out. {_LEFT_OUT}")
    if not keys:
        print("no digest to write: each image that can have one beside its tag has it")
        return
    replace_file(file, before, text, "rayhelm images FLEET --fill")
    print("\n".join(f"{key}: digest written" for key in keys))
    print("An image that Ray pods use starts a new Ray cluster: rayhelm diff says what changes.")


def _print_mirror(commands: Sequence[str], values: dict[str, object], only: MirrorPart | None) -> None:
    if only is not MirrorPart.values:
        print("\n".join(commands))
    if only is None:
        print()
    if only is not MirrorPart.commands:
        print("# Merge into the fleet file: yq -i '. *= load(\"mirror.yaml\")' fleet.yaml")
        print(yaml.safe_dump(values, sort_keys=False, width=110), end="")


def _list_warnings(images: Sequence[ImageOfFleet], rendered: Rendered) -> list[str]:
    found = []
    if open_images := [each for each in images if not each.image.digest]:
        first = open_images[0].image
        count = "1 image has" if len(open_images) == 1 else f"{len(open_images)} images have"
        found.append(
            f"{count} no known digest, and the content of a tag can change. Print the first one: crane digest {first}"
        )
    if operators := rendered.plan.declared.gitops and rendered.plan.declared.gitops.operators:
        found.append(f"the images of {', '.join(operators)} are in the charts of those projects, and not in this list")
    return found


def _as_json(each: ImageOfFleet) -> dict[str, object]:
    return {
        "image": str(each.image),
        "repository": each.image.full_repository,
        "tag": each.image.tag,
        "digest": each.image.digest or None,
        "releases": list(each.releases),
        "keys": [".".join(key.path) for key in each.keys],
    }


def _build_table(images: Sequence[ImageOfFleet]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("image", "tag", "digest", "releases", "key of the fleet file"):
        table.add_column(column, overflow="fold")
    for each in images:
        keys = "\n".join(".".join(key.path) for key in each.keys) or "-"
        cells = (each.image.repository, each.image.tag or "-", each.image.digest or NO_DIGEST, "\n".join(each.releases))
        table.add_row(*map(Text, (*cells, keys)))
    return table
