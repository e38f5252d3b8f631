"""python -m testbed.live_metrics.catalog: compare the metric catalog with a live endpoint, and write what changed.

Files of HAProxy's metrics get no new names: the catalog has those that queries use.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.table import Table

from rayhelm.cli.output import console
from rayhelm.errors import RayhelmError
from rayhelm.facts.metrics import load_exporters
from rayhelm.run.local.prometheus import find_prometheus
from testbed.live_metrics.catalog.compare import Change, compare_exporters
from testbed.live_metrics.catalog.run import record_phases
from testbed.live_metrics.catalog.scrapes import Phases
from testbed.live_metrics.catalog.write import apply_changes
from testbed.live_metrics.endpoint import serve
from testbed.tools import program

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "python/src/rayhelm/data/metrics"
RECORDED = ROOT / "tests/scaling/scrapes/ray-service.prom"
"""Recorded scrape of a Ray pod, with one series of each metric that the catalog calls seen."""


def main(arguments: Sequence[str]) -> int:
    """Compare and write. Exit codes: 0 success, 3 Prometheus or another program is missing."""
    parser = argparse.ArgumentParser(prog="python -m testbed.live_metrics.catalog", description=__doc__)
    parser.add_argument("--load", type=float, default=90, metavar="S", help="seconds of load (default 90)")
    parser.add_argument("--idle", type=float, default=45, metavar="S", help="seconds without requests (default 45)")
    parser.add_argument("--dry-run", action="store_true", help="print the changes, and write nothing")
    options = parser.parse_args(arguments)
    try:
        os.environ.setdefault("PROMETHEUS", str(program("prometheus")))
        find_prometheus()
        say("start an endpoint")
        with serve() as endpoint:
            phases = record_phases(endpoint, options.load, options.idle, say)
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    changes = compare_exporters(load_exporters(), phases)
    show(changes, len(phases.all))
    if not options.dry_run:
        write(changes, phases)
    return 0


def say(line: str) -> None:
    print(f"==> {line}", flush=True)


def show(changes: Sequence[Change], scraped: int) -> None:
    """Print a table of the differences."""
    print(f"{scraped} metrics scraped; {sum(change.is_written for change in changes)} changes to the catalog")
    if not changes:
        return
    table = Table("file", "metric", "field", "catalog", "live scrape", "written")
    for change in changes:
        field = "new metric" if change.entry else change.field
        written = "yes" if change.is_written else "no: depends on the run"
        table.add_row(change.file, change.metric, field, as_text(change.old), as_text(change.new), written)
    console().print(table)


def as_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def write(changes: Sequence[Change], phases: Phases) -> None:
    """Write the files of the catalog, and record a series of each metric that was not seen before."""
    for file, group in groupby(changes, key=lambda change: change.file):
        path = FOLDER / f"{file}.yaml"
        path.write_text(apply_changes(path.read_text(), group))
    recorded, scraped = RECORDED.read_text(), phases.all
    for change in changes:
        is_seen = change.entry is not None or (change.field, change.new) == ("seen", True)
        if is_seen and change.metric.startswith("ray_") and f"# TYPE {change.metric} " not in recorded:
            recorded += scraped[change.metric].example
    RECORDED.write_text(recorded)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
