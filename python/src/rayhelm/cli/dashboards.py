"""`rayhelm dashboards`: the Grafana dashboards that this installation carries."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rayhelm.cli.output import Format, FormatOption, console

__all__ = ["dashboards_command"]


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

    They need a data source of type Prometheus, which is chosen in Grafana.
    """
    import json

    from rayhelm.cli.files import write_file
    from rayhelm.errors import UsageError
    from rayhelm.observability.bundled import load_bundled, set_runbooks

    if runbook_url and not runbook_url.startswith(("http://", "https://")):
        raise UsageError(f"--runbook-url: {runbook_url} is not a URL. fix: --runbook-url https://example.com/runbooks")
    dashboards = {name: set_runbooks(each, runbook_url.rstrip("/")) for name, each in load_bundled().items()}
    files: dict[str, str] = {}
    if output and not list_only:
        for name, dashboard in dashboards.items():
            path = output / f"{name}.json"
            text = json.dumps(dashboard, indent=1, ensure_ascii=False) + "\n"
            write_file(path, text, "rayhelm dashboards -o FOLDER")
            files[name] = str(path)
    records = [_record(name, dashboard, files.get(name)) for name, dashboard in dashboards.items()]
    if format is Format.json:
        print(json.dumps({"dashboards": records}, indent=2))
        return
    if files:
        print("\n".join(files.values()))
        return
    _print_table(records)


def _record(name: str, dashboard: dict[str, Any], file: str | None) -> dict[str, Any]:
    """Return name, title, number of panels and description of a dashboard."""
    return {
        "name": name,
        "title": dashboard["title"],
        "uid": dashboard["uid"],
        "panels": sum(panel["type"] != "row" for panel in dashboard["panels"]),
        "description": dashboard["description"],
        **({"file": file} if file else {}),
    }


def _print_table(records: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name")
    table.add_column("panels", justify="right")
    table.add_column("description")
    for record in records:
        table.add_row(record["name"], str(record["panels"]), record["description"])
    console().print(table)
