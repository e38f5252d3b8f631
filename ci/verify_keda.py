"""ci/verify_keda.py: run tests/cluster/test_keda.py with the KEDA of ci/tools, and write ci/keda/result.json.

CI does not build KEDA. It checks that the result belongs to the present inputs: the ScaledObject that the chart gateway
renders, the pinned modules, and the test. `make verify-keda` builds KEDA and runs this.
"""

import hashlib
import json
import sys
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
    from verify_test import write_result

    return write_result(
        TEST, RESULT, compute_digest(), ("keda-operator", "keda-adapter", "kube-apiserver", "prometheus")
    )


if __name__ == "__main__":
    sys.exit(main())
