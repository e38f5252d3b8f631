"""Write the policy of the probe for chart `platform`; with `--check` fail where it is stale."""

import json
import sys

from rayhelm.deploy.charts.chart_file import write_chart_file
from rayhelm.live.probe.objects import ACCOUNT, NAMESPACE, WORKER
from rayhelm.live.probe.policy import build_policy

__all__ = ["generate"]


def generate() -> str:
    """Return policy and binding as JSON; the chart replaces images, priority class and namespace."""
    return json.dumps(build_policy(NAMESPACE, ACCOUNT, WORKER, [], "rayhelm-batch"), indent=1) + "\n"


def main(arguments: list[str]) -> int:
    return write_chart_file("platform/files/probe-policy.json", generate(), check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
