"""Compare two million mutated bodies as the gateway's parser and Python's parser read them, and write the result.

`make verify-bodies` runs this. It works in chunks that have a seed each, in several processes, and continues after an
interruption. CI reads one chunk and checks that the result belongs to the present inputs.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from gateway.kit import bodies, body_reader
from gateway.kit.body_reader import compare, generate_bodies, read_bodies, render_parser
from gateway.kit.process import find_haproxy_version

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "ci/bodies/result.json"
BODIES, CHUNK = 2_000_000, 20_000


def compute_digest(parser: dict[str, str]) -> str:
    """Return the checksum of what the result depends on: the parser, the generator and the comparison."""
    kit = Path(bodies.__file__).parent
    read = [Path(bodies.__file__), Path(body_reader.__file__), kit / "capture.lua", kit / "read_bodies.lua"]
    parts = [*(text.encode() for _, text in sorted(parser.items())), *(path.read_bytes() for path in read)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def verify_chunk(seed: int, count: int, parser: dict[str, str], folder: Path) -> dict[str, Any]:
    """Return the comparison of one chunk; read it from `folder` if it is there."""
    file = folder / f"{seed}-{count}.json"
    if file.exists():
        known: dict[str, Any] = json.loads(file.read_text())
        return known
    before = time.monotonic()
    made = generate_bodies(seed, count)
    found = asdict(compare(made, read_bodies(made, parser))) | {"seconds": time.monotonic() - before}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(found))
    new.replace(file)
    return found


def sum_up(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    accepted, refused = Counter[str](), Counter[str]()
    for chunk in chunks:
        accepted.update(chunk["accepted"])
        refused.update(chunk["refused"])
    return {
        "bodies": sum(chunk["bodies"] for chunk in chunks),
        "differences": sum(len(chunk["differences"]) for chunk in chunks),
        "accepted": dict(sorted(accepted.items())),
        "refused": dict(sorted(refused.items())),
        "refusedByPythonOnly": sum(chunk["refused_by_python"] for chunk in chunks),
        "processSeconds": round(sum(chunk["seconds"] for chunk in chunks)),
    }


def main(arguments: list[str]) -> int:
    """Return 1 if one body is read in two ways; then no result is written."""
    parsed = argparse.ArgumentParser(description=__doc__)
    parsed.add_argument("--bodies", type=int, default=BODIES)
    parsed.add_argument("--processes", type=int, default=os.cpu_count())
    parsed.add_argument("--write", type=Path, default=RESULT)
    options = parsed.parse_args(arguments)
    parser, before = render_parser(), time.monotonic()
    digest = compute_digest(parser)
    folder = ROOT / ".cache/verify-bodies" / digest
    folder.mkdir(parents=True, exist_ok=True)
    seeds, chunks = range(1, -(-options.bodies // CHUNK) + 1), []
    verify = partial(verify_chunk, count=CHUNK, parser=parser, folder=folder)
    with ProcessPoolExecutor(options.processes) as pool:
        for each in as_completed([pool.submit(verify, seed) for seed in seeds]):
            chunks.append(each.result())
            for difference in chunks[-1]["differences"]:
                print(difference)
            print(f"{len(chunks)}/{len(seeds)} chunks, {time.monotonic() - before:.0f} s", flush=True)
    total = sum_up(chunks)
    if total["differences"]:
        print(f"not written: {total['differences']} bodies are read in two ways", file=sys.stderr)
        return 1
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    versions = {"haproxy": ".".join(map(str, find_haproxy_version())), "python": platform.python_version()}
    result = {"inputs": digest, "commit": commit, "versions": versions, "processes": options.processes, **total}
    options.write.parent.mkdir(exist_ok=True)
    options.write.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
