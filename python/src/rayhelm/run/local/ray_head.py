"""`ray start` for one computer: `python -m rayhelm.run.local.ray_head PYTHON start --head ...`.

Ray starts its own processes with PYTHON. The server for Ray clients does not start, and the dashboard loads only the
Serve API, which receives serveConfigV2: each of the others is a process of 90 MiB. Ray has no options for that, so this
replaces private functions of Ray.
"""

import sys
from collections.abc import Sequence
from typing import Any


def main(python: str, *arguments: str) -> None:
    sys.executable = python
    _start_only_what_serve_needs()
    from ray.scripts.scripts import main as ray

    sys.argv = ["ray", *arguments]
    ray()


def _start_only_what_serve_needs() -> None:
    from ray._private import services
    from ray._private.node import Node

    original = services.start_ray_process

    def start_ray_process(command: Sequence[str], *rest: Any, **options: Any) -> Any:
        if any(part.endswith("dashboard/dashboard.py") for part in command):
            command = [*command, "--modules-to-load=ServeHead"]
        return original(command, *rest, **options)

    services.start_ray_process = start_ray_process
    Node.start_ray_client_server = lambda self: None


if __name__ == "__main__":
    main(*sys.argv[1:])
