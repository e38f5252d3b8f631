"""Write the dashboards as Grafana JSON, or prove them fresh: python -m rayhelm.observe.generate [--check]

dashboards/<name>.json                         for people to import
charts/platform/files/dashboards/<name>.json   the same for the chart: `.Files.Get` of a file outside it returns nothing
"""

import json
import sys
from pathlib import Path

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.errors import FleetError, MissingError, Problem, RayhelmError
from rayhelm.observe.check import check_query
from rayhelm.observe.dashboard_model import Dashboard
from rayhelm.observe.dashboards import load_dashboards

__all__ = ["check_dashboard", "folders", "generate", "stale"]


def folders() -> tuple[Path, Path]:
    """Folders that hold the files, both equal."""
    return charts_dir().parent / "dashboards", charts_dir() / "platform/files/dashboards"


def check_dashboard(dashboard: Dashboard) -> list[Problem]:
    """Return what is wrong with the queries of a dashboard."""
    file = f"rayhelm/observe/dashboards/{dashboard.name.replace('-', '_')}.py"
    return [
        problem
        for panel in dashboard.panels
        for query in panel.queries
        for problem in check_query(query.expr, name=panel.title, file=file)
    ]


def generate() -> dict[str, str]:
    """Text of each file by its name. Raise FleetError if a query cannot work, MissingError without grafanalib."""
    dashboards = load_dashboards()
    if problems := [problem for dashboard in dashboards.values() for problem in check_dashboard(dashboard)]:
        raise FleetError(problems)
    try:
        from rayhelm.observe.panels import as_json
    except ModuleNotFoundError as error:
        raise MissingError(f"{error.name} is not installed", "pip install 'rayhelm[dashboards]'") from None
    return {
        f"{name}.json": json.dumps(as_json(dashboard), indent=1, ensure_ascii=False) + "\n"
        for name, dashboard in dashboards.items()
    }


def stale(texts: dict[str, str]) -> list[Path]:
    """Files that are missing, differ, or belong to no dashboard."""
    found = [path for folder in folders() for path in sorted(folder.glob("*.json")) if path.name not in texts]
    for folder in folders():
        for name, text in texts.items():
            path = folder / name
            if not path.is_file() or path.read_text() != text:
                found.append(path)
    return found


def main(arguments: list[str]) -> int:
    texts = generate()
    todo = stale(texts)
    for path in todo:
        shown = path.relative_to(charts_dir().parent)
        if "--check" in arguments:
            print(f"stale: {shown}: run `make generate`")
        elif path.name in texts:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path.name])
            print(f"wrote {shown}")
        else:
            path.unlink()
            print(f"removed {shown}")
    return 1 if "--check" in arguments and todo else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RayhelmError as error:
        sys.exit(str(error))
