"""Time and memory of `rayhelm plan` on generated fleets of growing size."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from planning.fleets import generate_fleet

__all__ = ["SIZES", "measure_growth"]

SIZES = (
    (100, 10, True),
    (300, 30, True),
    (1000, 10, True),
    (1000, 30, True),
    (1000, 100, True),
    (10000, 100, True),
    (1000, 100, False),
)
"""Models, pools, and whether the lengths of the loads repeat."""
_RAYHELM = Path(sys.executable).with_name("rayhelm")


def measure_growth() -> list[dict[str, Any]]:
    """Return one row for each size, with the ratio of its CPU time to the one of the first size."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for models, pools, repeats in SIZES:
            file = Path(folder, f"{models}-{pools}.yaml")
            file.write_text(yaml.safe_dump(generate_fleet(models, pools, repeats_lengths=repeats), sort_keys=False))
            rows.append({"models": models, "pools": pools, "lengths_repeat": repeats} | _run(file))
            print(rows[-1], flush=True)
    first = rows[0]
    for row in rows:
        row["cpu_ratio"] = round(row["cpu_s"] / first["cpu_s"], 1)
        row["models_ratio"] = row["models"] / first["models"]
    return rows


def _run(file: Path) -> dict[str, float]:
    """Run the whole command, the start of Python included."""
    begun = time.monotonic()
    process = subprocess.Popen([_RAYHELM, "plan", file, "--format", "json"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"rayhelm plan {file.name} ended with {process.returncode}")
    return {
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "elapsed_s": round(time.monotonic() - begun, 2),
        "memory_mib": round(used.ru_maxrss / 1024),
    }
