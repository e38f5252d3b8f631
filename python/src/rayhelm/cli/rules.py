"""`rayhelm rules`: rule files of a fleet, for a Prometheus without the operator."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rayhelm.cli.files import as_json, describe_kept, write_folder
from rayhelm.cli.output import FleetArgument, Format, FormatOption, warn
from rayhelm.deploy.compose.prometheus_rules import list_models_without_price
from rayhelm.deploy.render.files import render_fleet
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.observe.rules.files import build_rule_files

__all__ = ["rules_command"]

MANIFEST = ".rayhelm-rules.json"


def rules_command(
    fleet: FleetArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Write the rule files into this folder.")],
    format: FormatOption = Format.text,
) -> None:
    """Write alert and recording rules as files for `rule_files` of a Prometheus without the operator.

    The fleet asks for rules with `clusters.NAME.prometheus.rules`. Chart `platform` installs the same rules. The folder
    keeps a list of the files; a later run removes those that it no longer writes, unless they were edited.
    """
    rendered = render_fleet(find_fleet_file(fleet))
    with rendered.plan.source.joined():
        files = build_rule_files(rendered)
    done = write_folder(output, files, MANIFEST, "rayhelm rules FLEET -o FOLDER")
    warnings = [*list_models_without_price(rendered.plan), *describe_kept(done)]
    if format is Format.json:
        print(json.dumps({**as_json(done), "warnings": warnings}, indent=2))
        return
    print("\n".join(map(str, done.written)))
    for path in done.removed:
        print(f"removed  {path}")
    for text in warnings:
        warn(text)
