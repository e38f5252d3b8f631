"""python -m testbed.live_metrics.recording: run an endpoint under load for 30 minutes, and record its series."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rayhelm.errors import RayhelmError
from rayhelm.run.local.prometheus import find_prometheus
from testbed.live_metrics.endpoint import serve
from testbed.live_metrics.recording.recorded import FLEET, RECORDED
from testbed.live_metrics.recording.run import PHASES, record
from testbed.tools import program


def main(arguments: Sequence[str]) -> int:
    """Record and write. Exit codes: 0 success, 3 Prometheus or another program is missing."""
    parser = argparse.ArgumentParser(prog="python -m testbed.live_metrics.recording", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=RECORDED, metavar="FILE", help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        os.environ.setdefault("PROMETHEUS", str(program("prometheus")))
        find_prometheus()
        say("start an endpoint")
        with serve(FLEET) as endpoint:
            recorded = record(endpoint, PHASES, say)
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    recorded.write(options.output)
    size = options.output.stat().st_size
    say(f"{options.output}: {len(recorded.series)} series, {recorded.steps} steps of {recorded.step} s, {size} bytes")
    return 0


def say(line: str) -> None:
    print(f"==> {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
