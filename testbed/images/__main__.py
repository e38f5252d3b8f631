"""`ci/images/build`: the images of the live tests, as OCI layouts in .cache/images. Linux, as root."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rayhelm.errors import MissingError, RayhelmError, UsageError
from rayhelm.run.local.gateway import find_haproxy
from testbed.images import LAYOUTS, Layout
from testbed.images.base import make_base, packages_of
from testbed.images.haproxy import make_haproxy
from testbed.images.python import make_code, make_packages, patterns_of
from testbed.images.redis import make_redis
from testbed.tools.checkout import HERE
from testbed.tools.lock import one_at_a_time

RECIPE = HERE.root / "ci" / "images" / "cpu"
LOCKS = tuple(HERE.root / "requirements" / f"{name}.txt" for name in ("core", "serve"))


def main(arguments: list[str]) -> int:
    """Build images. Exit codes: 0 success, 1 failure, 2 unknown image, 3 a tool is missing."""
    try:
        build(*arguments)
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def build(*tags: str) -> Layout:
    """Build all missing images, or `tags` and their base images. The base is Debian; HAProxy, Redis and the locked
    packages are on top of it, and rayhelm is on top of the packages."""
    layout, scratch = Layout(LAYOUTS / "ray"), LAYOUTS / ".scratch"
    steps: dict[str, Callable[[], None]] = {
        "base": lambda: make_base(layout, "base", packages_of(RECIPE / "base.packages"), scratch),
        "haproxy": lambda: make_haproxy(layout, "haproxy", "base", _find_haproxy(), scratch),
        "redis": lambda: make_redis(layout, "redis", "base", packages_of(RECIPE / "redis.packages"), scratch),
        "packages": lambda: make_packages(layout, "packages", "base", LOCKS, patterns_of(RECIPE / "left-out"), scratch),
        "cpu": lambda: make_code(layout, "cpu", "packages", scratch),
    }
    if unknown := [tag for tag in tags if tag not in steps]:
        raise UsageError(f"unknown image {', '.join(unknown)}; known: {', '.join(steps)}")
    if os.geteuid() != 0:
        raise MissingError("only root can build the Debian base image", "sudo ci/images/build")
    below = {"base", *(["packages"] if "cpu" in tags else [])}
    with one_at_a_time(LAYOUTS, "images"):
        for tag, make in steps.items():
            if not tags or tag in below.union(tags):
                _run_step(tag, layout, make)
    return layout


def _find_haproxy() -> Path:
    """Return the binary that HAPROXY names, whose libraries are in `lib` beside it, or the one of the wheel."""
    return Path(chosen) if (chosen := os.environ.get("HAPROXY")) else find_haproxy()


def _run_step(tag: str, layout: Layout, make: Callable[[], None]) -> None:
    begin = time.monotonic()
    print(f"==> {layout.reference(tag)}", flush=True)
    make()
    print(f"    {layout.size(tag) / 2**20:.0f} MiB, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
