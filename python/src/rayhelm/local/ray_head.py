"""`ray start` for one computer: `python -m rayhelm.local.ray_head PYTHON start --head ...`.

Ray starts its own processes with PYTHON. The dashboard loads only the Serve API, which receives serveConfigV2: each of
its other modules is a process of 90 MiB. Ray has no option for that, so this replaces a private function of Ray.
"""

import sys
from collections.abc import Sequence
from typing import Any


def main(python: str, *arguments: str) -> None:
    sys.executable = python
    _load_only_serve_in_dashboard()
    from ray.scripts.scripts import main as ray

    sys.argv = ["ray", *arguments]
    ray()


def _load_only_serve_in_dashboard() -> None:
    from ray._private import services

    original = services.start_ray_process

    def start_ray_process(command: Sequence[str], *rest: Any, **options: Any) -> Any:
        if any(part.endswith("dashboard/dashboard.py") for part in command):
            command = [*command, "--modules-to-load=ServeHead"]
        return original(command, *rest, **options)

    services.start_ray_process = start_ray_process


if __name__ == "__main__":
    main(*sys.argv[1:])
