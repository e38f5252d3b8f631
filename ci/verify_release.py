"""Run tests/cluster/test_release.py with the cosign of ci/tools, and write ci/releases/result.json.

CI does not build cosign. It checks that the result belongs to the present inputs: the scripts of a release, the pinned
module, and the test. `make verify-release` builds cosign and runs this.
"""

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "ci/releases/result.json"
TEST = ROOT / "tests/cluster/test_release.py"
SCRIPTS = ("release", "sign-charts", "attest", "publish", "sign-pushed", "set-version")
INPUTS = (
    *(ROOT / "ci" / name for name in SCRIPTS),
    ROOT / "ci/tools/cosign/go.mod",
    ROOT / "ci/tools/cosign/go.sum",
    ROOT / "tests/cluster/kit/release_rehearsal.py",
    TEST,
)


def compute_digest() -> str:
    """Return the checksum of what the result depends on."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in INPUTS)).hexdigest()


def main() -> int:
    """Run the test, and write the result if no test failed or was skipped."""
    from verify_test import write_result

    return write_result(TEST, RESULT, compute_digest(), ("cosign", "registry", "helm", "kube-apiserver"))


if __name__ == "__main__":
    sys.exit(main())
