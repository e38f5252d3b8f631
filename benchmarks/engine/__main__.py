"""python -m engine --gpu GPU [--only NAME...] [--write FILE]: measure each shape in a process of its own."""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from engine.page import PAGE, SHAPES, replace_tables
from rayhelm.facts import load_catalog

SHAPE_FILES = Path(__file__).parent / "shapes"
_LOGGED = re.compile(
    r"Available KV cache memory: (?P<kv_available_gib>[\d.]+) GiB|loading took (?P<weights_gib>[\d.]+)"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-engine", description=__doc__)
    parser.add_argument("--gpu", required=True, help="id of this GPU in the catalog, such as H200-SXM-141GB")
    parser.add_argument("--only", nargs="*", choices=sorted(SHAPES), help="shapes; the others keep their result")
    parser.add_argument("--write", type=Path, help="file for the result as JSON; the page is updated too")
    asked = parser.parse_args()
    load_catalog().gpu(asked.gpu)
    result: dict[str, Any] = json.loads(asked.write.read_text()) if asked.write and asked.write.exists() else {}
    shapes = result.get("shapes", {})
    for name in asked.only or SHAPES:
        print(f"==> {name}", flush=True)
        shapes[name] = measure(name)
        print(json.dumps(shapes[name], indent=2))
    result |= {
        "command": "make bench-engine",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "gpu": asked.gpu,
        "shapes": {name: shapes[name] for name in SHAPES if name in shapes},
    }
    if asked.write:
        asked.write.write_text(json.dumps(result, indent=2) + "\n")
        PAGE.write_text(replace_tables(PAGE.read_text(), result))
    return 0


def measure(name: str) -> dict[str, Any]:
    """Return what the engine measured, with the memory that its log names, in GiB."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text((SHAPE_FILES / f"{name}.json").read_text())
        file = Path(folder, "result.json")
        done = subprocess.run(
            [sys.executable, "-m", "engine.measure", folder, str(file)],
            env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if not file.exists():
            raise SystemExit(f"error: vLLM did not start with the shape {name}:\n{done.stdout[-4000:]}")
        logged = [found.groupdict() for found in _LOGGED.finditer(done.stdout)]
        memory = {key: float(value) for each in logged for key, value in each.items() if value}
        measured: dict[str, Any] = json.loads(file.read_text())
        return memory | measured


if __name__ == "__main__":
    sys.exit(main())
