"""python -m planning [--write FILE] [--part growth|gap|cp-sat|edits]"""

import argparse
import datetime
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planning.cp_sat import measure_cp_sat
from planning.edits import measure_edits
from planning.gap import measure_gap
from planning.growth import measure_growth
from planning.page import PAGE, replace_table

_GAP_FLEETS = 200
_PARTS: dict[str, Callable[[], Any]] = {
    "growth": measure_growth,
    "gap": lambda: measure_gap(_GAP_FLEETS),
    "cp-sat": measure_cp_sat,
    "edits": lambda: measure_edits(100, 10, 5),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-plan", description=__doc__)
    parser.add_argument(
        "--write",
        type=Path,
        help="file for the result as JSON; parts that did not run stay in it; the page is updated too",
    )
    parser.add_argument("--part", choices=_PARTS, help="run one part only")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if options.write and options.write.exists():
        found = json.loads(options.write.read_text())
    found["command"] = "make bench-plan"
    for name in [options.part] if options.part else _PARTS:
        conditions = _describe_conditions()
        found[name] = {"conditions": conditions, "result": _PARTS[name]()}
        print(json.dumps({name: found[name]}, indent=1))
    if options.write:
        options.write.write_text(json.dumps(found, indent=1) + "\n")
        if "cp-sat" in found:
            PAGE.write_text(replace_table(PAGE.read_text(), found["cp-sat"]["result"]))
    return 0


def _describe_conditions() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpus": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


if __name__ == "__main__":
    raise SystemExit(main())
