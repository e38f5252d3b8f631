"""`ci/images/build`: the images of the live tests, as OCI layouts in .cache/images. Linux, as root."""

import os
import sys
import time
from collections.abc import Callable

from rayhelm.errors import MissingError, RayhelmError
from rayhelm.serving.door import find_haproxy
from testbed.images import LAYOUTS, Layout
from testbed.images.base import make_base, packages_of
from testbed.images.haproxy import make_haproxy
from testbed.images.python import make_code, make_packages, patterns_of
from testbed.tools.site import HERE

RECIPE = HERE.root / "ci" / "images" / "cpu"
LOCKS = tuple(HERE.root / "requirements" / f"{name}.txt" for name in ("core", "serve"))


def main(arguments: list[str]) -> int:
    """Exit code: 0, 1 where something failed, 3 where something is missing."""
    try:
        build(only_base=arguments == ["base"])
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def build(*, only_base: bool = False) -> Layout:
    """Each layer that is not there yet: Debian, HAProxy on top of it, and the locked packages with rayhelm on top."""
    if os.geteuid() != 0:
        raise MissingError("a base of Debian is made by root", "sudo ci/images/build")
    layout, scratch = Layout(LAYOUTS / "ray"), LAYOUTS / ".scratch"
    _step("base", layout, lambda: make_base(layout, "base", packages_of(RECIPE / "base.packages"), scratch))
    if only_base:
        return layout
    _step("haproxy", layout, lambda: make_haproxy(layout, "haproxy", "base", find_haproxy(), scratch))
    left_out = patterns_of(RECIPE / "left-out")
    _step("packages", layout, lambda: make_packages(layout, "packages", "base", LOCKS, left_out, scratch))
    _step("cpu", layout, lambda: make_code(layout, "cpu", "packages", scratch))
    return layout


def _step(tag: str, layout: Layout, make: Callable[[], None]) -> None:
    begin = time.monotonic()
    print(f"==> {layout.reference(tag)}", flush=True)
    make()
    print(f"    {layout.size(tag) / 2**20:.0f} MiB, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
