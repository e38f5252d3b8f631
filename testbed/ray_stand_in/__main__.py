"""`python -m testbed.ray_stand_in --port N --kubeconfig PATH`: runs until it is ended."""

import argparse
import sys
from pathlib import Path

from rayhelm import processes
from rayhelm.errors import RayhelmError, UsageError
from testbed.ray_stand_in.app import App
from testbed.ray_stand_in.mirror import Mirror
from testbed.ray_stand_in.schema import RayCheck
from testbed.ray_stand_in.server import Server


def main() -> None:
    try:
        _run(_parse_arguments())
    except RayhelmError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed.ray_stand_in", description="A stand-in for Ray.")
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1; 0: a free one")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--cluster-domain", default="cluster.local", help="CLUSTER_DOMAIN of the operator")
    parser.add_argument("--state", type=Path, help="folder for configurations and failures, which survive a restart")
    return parser.parse_args()


def _run(options: argparse.Namespace) -> None:
    if not 0 <= options.port <= 65535:
        raise UsageError(f"--port {options.port} is not between 0 and 65535")
    mirror = Mirror(options.kubeconfig)
    check = RayCheck()
    app = App(
        mirror,
        domain=options.cluster_domain,
        state=options.state,
        check=check,
        checked_by=lambda: check.by,
        ready=mirror.ready,
    )
    try:
        server = Server(options.port, app)
    except OSError as error:
        raise UsageError(f"port {options.port} is taken by {processes.find_listener(options.port)}: {error}") from error
    mirror.start()
    print(f"stand-in for Ray on {server.url}", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        mirror.stop()


if __name__ == "__main__":
    main()
