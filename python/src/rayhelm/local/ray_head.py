"""`ray start` for one computer: `python -m rayhelm.local.ray_head PYTHON start --head ...`.

PYTHON is what Ray starts its own Pythons with. What only a cluster needs is left out, since each part is a process of
90 MiB and a second of computing: the autoscaler's monitor, the server for Ray clients, the dashboard's pages. What is
left of the dashboard is the Serve API, which takes serveConfigV2.
"""

import sys
from collections.abc import Sequence
from typing import Any


def main(python: str, *arguments: str) -> None:
    sys.executable = python
    _leave_out_what_clusters_need()
    from ray.scripts.scripts import main as ray

    sys.argv = ["ray", *arguments]
    ray()


def _leave_out_what_clusters_need() -> None:
    from ray._private import services
    from ray._private.node import Node

    started = services.start_ray_process

    def start_ray_process(command: Sequence[str], *rest: Any, **options: Any) -> Any:
        if any(part.endswith("dashboard/dashboard.py") for part in command):
            command = [*command, "--modules-to-load=ServeHead"]
        return started(command, *rest, **options)

    services.start_ray_process = start_ray_process
    Node.start_monitor = lambda self: None
    Node.start_ray_client_server = lambda self: None


if __name__ == "__main__":
    main(*sys.argv[1:])
