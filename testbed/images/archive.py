"""`ci/images/archive IMAGE FILE`: export an image to a file, for clusters other than `make node`."""

import sys
from pathlib import Path

from rayhelm.errors import MissingError, RayhelmError, UsageError
from testbed.images.layout import LAYOUTS, Layout

__all__ = ["layout_of"]


def main(arguments: list[str]) -> int:
    """Export an image. Exit codes: 0 success, 1 the file cannot be written, 2 wrong usage, 3 the image is not built."""
    try:
        if len(arguments) != 2:
            raise UsageError("ci/images/archive IMAGE FILE, such as ray:cpu ray-cpu.tar")
        image, file = arguments
        layout, tag = layout_of(image)
        try:
            with Path(file).open("wb") as to:
                layout.export(tag, to)
        except OSError as error:
            raise RayhelmError(f"{file}: {error.strerror}") from None
    except RayhelmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{layout.reference(tag)}: {Path(file).stat().st_size / 2**20:.0f} MiB in {file}")
    return 0


def layout_of(image: str) -> tuple[Layout, str]:
    """Return the layout with an image, and its tag. Raises MissingError if there is none."""
    name, _, tag = image.partition(":")
    layout = Layout(LAYOUTS / name)
    if tag not in layout.tags():
        raise MissingError(f"there is no image {image} in {LAYOUTS}", "ci/images/build")
    return layout, tag


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
