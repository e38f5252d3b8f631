"""Draw the dashboards: `python -m ci.pictures -o FOLDER`, from the recorded run or, with `--prometheus URL`, from a
running Prometheus.

Every panel runs its own queries over the range. A panel without data, with an error or without a unit is reported, and
the command ends with 1. `may-be-empty` lists panels that have a reason to be empty: DASHBOARD/PANEL | reason.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

import httpx

from .draw import draw
from .source import Json, Panel, Range, read_panels

ROOT = Path(__file__).resolve().parents[2]
MAY_BE_EMPTY = Path(__file__).with_name("may-be-empty")


@dataclass(frozen=True)
class Report:
    """What is known of the panels of one dashboard."""

    dashboard: str
    panels: int
    with_data: int
    queries: int
    queries_with_data: int
    empty: dict[str, str]
    """Empty panels, with the reason that is listed, or with nothing."""
    errors: dict[str, str]
    without_unit: list[str]

    @property
    def is_good(self) -> bool:
        return not self.errors and not self.without_unit and all(self.empty.values())


def report(dashboard: Json, panels: list[Panel], reasons: Mapping[str, str]) -> Report:
    """Count what the queries returned."""
    name = dashboard["uid"].removeprefix("rayhelm-")
    real = [panel for panel in panels if panel.json["type"] != "row"]

    def reason(title: str) -> str:
        return next((why for pattern, why in reasons.items() if fnmatchcase(f"{name}/{title}", pattern)), "")

    empty = [panel.json["title"] for panel in real if panel.is_empty and not panel.error]
    return Report(
        dashboard=name,
        panels=len(real),
        with_data=sum(not panel.is_empty for panel in real),
        queries=sum(len(panel.json["targets"]) for panel in real),
        queries_with_data=sum(bool(result.series) for panel in real for result in panel.results),
        empty={title: reason(title) for title in empty},
        errors={panel.json["title"]: panel.error for panel in real if panel.error},
        without_unit=[panel.json["title"] for panel in real if not has_unit(panel.json)],
    )


def has_unit(panel: Json) -> bool:
    """A unit, or texts for the values. The columns of a table have their own."""
    if panel["type"] == "table":
        properties = [{item["id"] for item in each["properties"]} for each in panel["fieldConfig"]["overrides"]]
        return sum("unit" in names for names in properties) == len(panel["targets"])
    defaults = panel["fieldConfig"]["defaults"]
    return bool(defaults.get("unit"))


def read_reasons(file: Path) -> dict[str, str]:
    """Patterns of panels that may be empty, with their reasons."""
    rows = [line for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]
    found = {pattern.strip(): why.strip() for pattern, _, why in (row.partition("|") for row in rows)}
    if without := [pattern for pattern, why in found.items() if not why]:
        sys.exit(f"{file}: {without[0]}: has no reason")
    return found


def _time(text: str) -> float:
    return time.time() if text == "now" else float(text) if text.isdigit() else datetime.fromisoformat(text).timestamp()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prometheus", metavar="URL", help="without it, the recorded run of testbed/live_metrics")
    parser.add_argument("--end", default="now", help="end of the range with --prometheus: Unix seconds or ISO 8601")
    parser.add_argument("--minutes", default=60, type=float, help="length of the range with --prometheus")
    parser.add_argument("--step", default=15, type=float, help="seconds between two points")
    parser.add_argument(
        "--set", default=[], action="append", metavar="VARIABLE=VALUE", help="a variable; others are All"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--report", type=Path, help="write the counts as JSON")
    parser.add_argument("files", nargs="*", type=Path, help="dashboards; without them all of dashboards/")
    options = parser.parse_args(arguments)
    chosen = dict(each.split("=", 1) for each in options.set)
    reasons = read_reasons(MAY_BE_EMPTY)
    reports = []
    with open_source(options) as (url, during), httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        for file in options.files or sorted((ROOT / "dashboards").glob("*.json")):
            dashboard = json.loads(file.read_text())
            panels = read_panels(client, dashboard, during, chosen)
            found = report(dashboard, panels, reasons)
            draw(dashboard, panels, options.output / f"{file.stem}.png", found.empty)
            reports.append(found)
    for each in reports:
        show(each)
    if options.report:
        options.report.write_text(json.dumps([asdict(each) for each in reports], indent=1) + "\n")
    return 0 if all(each.is_good for each in reports) else 1


@contextmanager
def open_source(options: argparse.Namespace) -> Iterator[tuple[str, Range]]:
    """Yield the URL of a Prometheus, and the time to draw."""
    if options.prometheus:
        end = _time(options.end)
        yield options.prometheus, Range(end - options.minutes * 60, end, options.step)
        return
    from testbed.live_metrics.recording import load_recorded
    from testbed.live_metrics.recording.server import serve_recorded

    recorded = load_recorded()
    begin, end = (recorded.start + step * recorded.step for step in (0, recorded.steps - 1))
    with tempfile.TemporaryDirectory() as folder, serve_recorded(recorded, Path(folder)) as url:
        yield url, Range(begin, end, recorded.step, recorded.step)


def show(found: Report) -> None:
    """Print the counts of one dashboard, and what is wrong."""
    share = (
        f"{found.with_data} of {found.panels} panels, {found.queries_with_data} of {found.queries} queries have data"
    )
    print(f"{found.dashboard}: {share}")
    for title, why in found.empty.items():
        print(f"  {'empty' if not why else 'may be empty'}: {title}{': ' + why if why else ''}")
    for title, error in found.errors.items():
        print(f"  error: {title}: {error}")
    for title in found.without_unit:
        print(f"  no unit: {title}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
