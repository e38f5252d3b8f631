"""python -m failures [--only NAME...] [--kubeconfig FILE] [--write FILE]"""

import argparse
import datetime
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from failures.installation import Installation, install, open_session
from failures.page import FIGURES, PAGE, build_table, replace_figures, replace_table
from failures.rows import ROWS, Row
from rayhelm.errors import RayhelmError
from rayhelm.run.rehearsal.checks import inspect_cluster
from rayhelm.run.rehearsal.load import CLIENTS, PAUSE, LoadResult
from rayhelm.run.rehearsal.usage import UsageMonitor

ROOT = Path(__file__).parents[2]
BEFORE, AFTER = 10.0, 15.0
"""Seconds of load before the event, and after everything is ready again."""
MAX_FAILURES = 10
"""Failed requests that are recorded per row."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-failures", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", choices=[row.name for row in ROWS], help="rows to measure; the others keep their result"
    )
    parser.add_argument("--kubeconfig", type=Path, default=ROOT / ".state" / "node" / "kubeconfig")
    parser.add_argument("--write", type=Path, help="file for the result as JSON; the page is updated too")
    asked = parser.parse_args()
    rows = [row for row in ROWS if not asked.only or row.name in asked.only]
    result: dict[str, Any] = json.loads(asked.write.read_text()) if asked.write and asked.write.exists() else {}
    found = {row["name"]: row for row in result.get("rows", ())}
    try:
        result |= _about(asked.kubeconfig)
        for row in _measure(rows, asked.kubeconfig):
            found[row["name"]] = row
            result["rows"] = [found[row.name] for row in ROWS if row.name in found]
            if asked.write:
                asked.write.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
                PAGE.write_text(replace_table(PAGE.read_text(), result["rows"]))
                FIGURES.write_text(replace_figures(FIGURES.read_text(), result["rows"]))
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(build_table(result["rows"]))
    return 0


def _measure(rows: list[Row], kubeconfig: Path) -> Iterator[dict[str, Any]]:
    console = Console(stderr=True, highlight=False, width=150)
    for setting, group in groupby(rows, lambda row: row.setting):
        session = open_session(kubeconfig)
        console.print(f"==> {setting}")
        with install(setting, session) as installed:
            for row in group:
                made = _measure_row(row, installed)
                counts = ", ".join(f"{made[name]} {name}" for name in ("answered", "failed", "interrupted"))
                console.print(f"    {row.name}: {counts}")
                yield made


def _measure_row(row: Row, installation: Installation) -> dict[str, Any]:
    """Measure one event under constant load."""
    service = installation.service.name
    namespaces = {release.namespace for release in installation.stand_ins.releases}
    with (
        UsageMonitor(installation.session.kubectl, {service: Counter()}, {}, namespaces) as monitor,
        installation.run_load() as load,
    ):
        installation.load, installation.switched = load, None
        used = MemoryMonitor()
        time.sleep(BEFORE)
        moment = begin = time.time()
        with used:
            row.run(installation)
        seconds = time.time() - begin
        time.sleep(AFTER)
    outcome = load.outcome
    return {
        "name": row.name,
        "event": row.event,
        "workers": row.setting.workers,
        "replicas": row.setting.workers,
        "gateways": row.setting.gateways,
        "redis": row.setting.redis,
        "haproxy": installation.find_haproxy(),
        "answered": len(outcome.answered),
        "failed": sum(not result.interrupted for result in outcome.failed),
        "interrupted": sum(result.interrupted for result in outcome.failed),
        "slowest_seconds": round(outcome.slowest, 1),
        "switched_seconds": None if installation.switched is None else round(installation.switched - begin, 1),
        "seconds": round(seconds, 1),
        "peak_clusters": monitor.peak_clusters,
        "peak_pods": monitor.peak_pods,
        "memory_gib": round(used.peak / 2**30, 1),
        "versions": _versions(outcome),
        "failures": [
            asdict(result) | {"started": round(result.started - moment, 1)} for result in outcome.failed[:MAX_FAILURES]
        ],
    }


class MemoryMonitor:
    """Peak memory of the computer during a row, sampled every second."""

    def __init__(self) -> None:
        self.peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            memory = psutil.virtual_memory()
            self.peak = max(self.peak, memory.total - memory.available)
            if self._ended.wait(1):
                return


def _versions(outcome: LoadResult) -> dict[str, int]:
    names = [result.version for result in outcome.answered]
    return {name: names.count(name) for name in sorted(set(names))}


def _about(kubeconfig: Path) -> dict[str, Any]:
    session = open_session(kubeconfig)
    found = inspect_cluster(session.kubectl)
    return {
        "command": "make bench-failures",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "kuberay": found.kuberay,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "clients": CLIENTS,
        "pause_seconds": PAUSE,
    }


if __name__ == "__main__":
    sys.exit(main())
