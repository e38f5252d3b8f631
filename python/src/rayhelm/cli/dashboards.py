"""`rayhelm dashboards`: the Grafana dashboards that this installation carries."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from rayhelm.cli.files import WrittenFolder, as_json, describe_kept, write_folder
from rayhelm.cli.output import Format, FormatOption, console, warn
from rayhelm.errors import UsageError
from rayhelm.observe.bundled import list_panels, load_bundled, set_runbooks

__all__ = ["dashboards_command"]

MANIFEST = ".rayhelm-dashboards"
"""Without the ending .json: Grafana reads each `*.json` of a provisioned folder as a dashboard."""


def dashboards_command(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the dashboards as JSON into this folder.")
    ] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="List the dashboards and write nothing; the default without -o.")
    ] = False,
    runbook_url: Annotated[
        str, typer.Option("--runbook-url", help="URL of the folder with the runbooks; without it panels have no links.")
    ] = "",
    format: FormatOption = Format.text,
) -> None:
    """Write the Grafana dashboards, for import by hand or by provisioning. Chart `platform` installs the same ones.

    They need a data source of type Prometheus, which is chosen in Grafana. The folder keeps a list of the files; a
    later run removes those that it no longer writes, unless they were edited.
    """
    if runbook_url and not runbook_url.startswith(("http://", "https://")):
        raise UsageError(f"--runbook-url: {runbook_url} is not a URL. fix: --runbook-url https://example.com/runbooks")
    dashboards = {name: set_runbooks(each, runbook_url.rstrip("/")) for name, each in load_bundled().items()}
    done = WrittenFolder()
    if output and not list_only:
        texts = {
            f"{name}.json": json.dumps(each, indent=1, ensure_ascii=False) + "\n" for name, each in dashboards.items()
        }
        done = write_folder(output, texts, MANIFEST, "rayhelm dashboards -o FOLDER")
    files = {path.stem: str(path) for path in done.written}
    records = [_record(name, dashboard, files.get(name)) for name, dashboard in dashboards.items()]
    if format is Format.json:
        more = {**as_json(done), "warnings": describe_kept(done)} if files else {}
        print(json.dumps({"dashboards": records, **more}, indent=2))
        return
    if not files:
        _print_table(records)
        return
    print("\n".join(files.values()))
    for path in done.removed:
        print(f"removed  {path}")
    for text in describe_kept(done):
        warn(text)


def _record(name: str, dashboard: dict[str, Any], file: str | None) -> dict[str, Any]:
    """Return name, title, number of panels and description of a dashboard."""
    return {
        "name": name,
        "title": dashboard["title"],
        "uid": dashboard["uid"],
        "panels": sum(panel["type"] != "row" for panel in list_panels(dashboard)),
        "description": dashboard["description"],
        **({"file": file} if file else {}),
    }


def _print_table(records: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("name")
    table.add_column("panels", justify="right")
    table.add_column("description")
    for record in records:
        table.add_row(record["name"], str(record["panels"]), record["description"])
    console().print(table)
