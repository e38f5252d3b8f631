"""Write the policy of the probe for chart `platform`; with `--check` fail where it is stale."""

import json
import sys

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.live.probe.objects import ACCOUNT, NAMESPACE, WORKER
from rayhelm.live.probe.policy import build_policy

__all__ = ["generate"]


def generate() -> str:
    """Return policy and binding as JSON; the chart replaces images, priority class and namespace."""
    return json.dumps(build_policy(NAMESPACE, ACCOUNT, WORKER, [], "rayhelm-batch"), indent=1) + "\n"


def main(arguments: list[str]) -> int:
    path, text = charts_dir() / "platform/files/probe-policy.json", generate()
    if path.is_file() and path.read_text() == text:
        return 0
    if "--check" in arguments:
        print(f"stale: charts/platform/files/{path.name}: run `make generate`")
        return 1
    path.write_text(text)
    print(f"wrote charts/platform/files/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
