"""ci/verify_keda.py: run tests/cluster/test_keda.py with the KEDA of ci/tools, and write ci/keda/result.json.

CI does not build KEDA. It checks that the result belongs to the present inputs: the ScaledObject that the chart gateway
renders, the pinned modules, and the test. `make verify-keda` builds KEDA and runs this.
"""

import hashlib
import json
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "ci/keda/result.json"
TEST = ROOT / "tests/cluster/test_keda.py"
INPUTS = (
    ROOT / "ci/tools/keda/go.mod",
    ROOT / "ci/tools/keda/go.sum",
    ROOT / "tests/cluster/kit/keda.py",
    TEST,
    ROOT / "tests/charts/values/gateway/keda.yaml",
)


def compute_digest() -> str:
    """Return the checksum of what the result depends on."""
    from rayhelm.deploy.charts.helm import template

    values = yaml.safe_load((ROOT / "tests/charts/values/gateway/keda.yaml").read_text())
    objects = template("gateway", "gateway", "gateway", values)
    specs = [item["spec"] for item in objects if item["kind"] == "ScaledObject"]
    parts = [json.dumps(specs, sort_keys=True).encode(), *(path.read_bytes() for path in INPUTS)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def main() -> int:
    """Run the test, and write the result if no test failed or was skipped."""
    from testbed.tools import find

    before = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", f"--junit-xml={report}", str(TEST)]
        ended = subprocess.run(command, cwd=ROOT, check=False)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    outcomes = {str(case.get("name")): "passed" if len(case) == 0 else case[0].tag for case in cases}
    if ended.returncode or not outcomes or set(outcomes.values()) != {"passed"}:
        print(f"not written: {outcomes or 'no test ran'}", file=sys.stderr)
        return ended.returncode or 1
    programs = ("keda-operator", "keda-adapter", "kube-apiserver", "prometheus")
    result = {
        "inputs": compute_digest(),
        "versions": {each: find.found(each).version for each in programs},
        "seconds": round(time.monotonic() - before),
        "computer": f"{platform.machine()}, Python {platform.python_version()}",
        "tests": outcomes,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written: {RESULT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
