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

from failures.page import PAGE, table, with_table
from failures.rows import ROWS, Row
from failures.scene import Scene, open_session, scene
from rayhelm.errors import RayhelmError
from rayhelm.rehearsal.checks import inspect_cluster
from rayhelm.rehearsal.load import CLIENTS, PAUSE, LoadResult
from rayhelm.rehearsal.usage import UsageMonitor

ROOT = Path(__file__).parents[2]
BEFORE, AFTER = 10.0, 15.0
"""Seconds of load before something happens, and after all is whole again."""
TOLD = 10
"""Lost requests that are told of each row."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-failures", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[row.name for row in ROWS], help="rows to make; the others stay")
    parser.add_argument("--kubeconfig", type=Path, default=ROOT / ".state" / "node" / "kubeconfig")
    parser.add_argument("--write", type=Path, help="a file for the result as JSON; the page has it too")
    asked = parser.parse_args()
    wanted = [row for row in ROWS if not asked.only or row.name in asked.only]
    result: dict[str, Any] = json.loads(asked.write.read_text()) if asked.write and asked.write.exists() else {}
    found = {row["name"]: row for row in result.get("rows", ())}
    try:
        result |= _about(asked.kubeconfig)
        for row in _made(wanted, asked.kubeconfig):
            found[row["name"]] = row
            result["rows"] = [found[row.name] for row in ROWS if row.name in found]
            if asked.write:
                asked.write.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
                PAGE.write_text(with_table(PAGE.read_text(), result["rows"]))
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(table(result["rows"]))
    return 0


def _made(rows: list[Row], kubeconfig: Path) -> Iterator[dict[str, Any]]:
    console = Console(stderr=True, highlight=False, width=150)
    for setting, group in groupby(rows, lambda row: row.setting):
        session = open_session(kubeconfig)
        console.print(f"==> {setting}")
        with scene(setting, session) as played:
            for row in group:
                made = _row(row, played)
                console.print(f"    {row.name}: {made['answered']} answered, {made['lost']} lost, {made['cut']} cut")
                yield made


def _row(row: Row, played: Scene) -> dict[str, Any]:
    """Steady load, and something that happens."""
    service = played.service.name
    where = {release.namespace for release in played.stand_ins.releases}
    with UsageMonitor(played.session.kubectl, {service: Counter()}, {}, where) as watch, played.called() as load:
        played.load, played.switched = load, None
        used = Memory()
        time.sleep(BEFORE)
        moment = begin = time.time()
        with used:
            row.happen(played)
        seconds = time.time() - begin
        time.sleep(AFTER)
    outcome = load.outcome
    return {
        "name": row.name,
        "what": row.what,
        "workers": row.setting.workers,
        "replicas": row.setting.workers,
        "doors": row.setting.doors,
        "redis": row.setting.redis,
        "answered": len(outcome.answered),
        "lost": sum(not seen.interrupted for seen in outcome.failed),
        "cut": sum(seen.interrupted for seen in outcome.failed),
        "slowest": round(outcome.slowest, 1),
        "switched": None if played.switched is None else round(played.switched - begin, 1),
        "seconds": round(seconds, 1),
        "clusters_at_most": watch.peak_clusters,
        "pods_at_most": watch.peak_pods,
        "memory_gib": round(used.peak / 2**30, 1),
        "versions": _versions(outcome),
        "losses": [asdict(seen) | {"begun": round(seen.started - moment, 1)} for seen in outcome.failed[:TOLD]],
    }


class Memory:
    """Memory that the whole computer uses at most: looked at where a row begins and ends, and between."""

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
    names = [seen.version for seen in outcome.answered]
    return {name: names.count(name) for name in sorted(set(names))}


def _about(kubeconfig: Path) -> dict[str, Any]:
    session = open_session(kubeconfig)
    found = inspect_cluster(session.kubectl)
    return {
        "how": "make bench-failures",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "kuberay": found.kuberay,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "callers": CLIENTS,
        "pause_seconds": PAUSE,
    }


if __name__ == "__main__":
    sys.exit(main())
