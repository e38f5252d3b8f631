"""Mirror the images of a fleet into one registry: the commands that copy them, and the keys that name the copies."""

import re
import shlex
from collections.abc import Sequence
from typing import Any, Literal

from rayhelm.deploy.images.collect import ImageOfFleet
from rayhelm.deploy.images.reference import ImageReference
from rayhelm.errors import UsageError

__all__ = ["CopyTool", "build_mirror_values", "check_mirror", "list_copy_commands"]

CopyTool = Literal["skopeo", "crane"]
_MIRROR = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")


def check_mirror(mirror: str, option: str = "--mirror") -> str:
    """Return the registry, with a path in it. Raises UsageError if it is no registry."""
    host = mirror.partition("/")[0]
    if _MIRROR.fullmatch(mirror) and ("." in host or ":" in host or host == "localhost"):
        return mirror
    example = re.sub(r"^[a-z]+://", "", mirror).strip("/").lower()
    if not (_MIRROR.fullmatch(example) and "." in example.partition("/")[0]):
        example = "registry.example/mirror"
    message = f"`{mirror}` is not a registry: write its host, and a path without a slash at the end"
    raise UsageError(f"{message}. fix: {option} {example}")


def list_copy_commands(images: Sequence[ImageOfFleet], mirror: str, tool: CopyTool) -> list[str]:
    """Return a command for each image. All architectures are copied, so digests stay as they are."""
    return [_build_command(each.image, mirror, tool) for each in images if not _is_in(each.image, mirror)]


def build_mirror_values(images: Sequence[ImageOfFleet], mirror: str) -> dict[str, Any]:
    """Return the part of the fleet file that names the copies."""
    found: dict[str, Any] = {}
    for each in images:
        if _is_in(each.image, mirror):
            continue
        for key in each.keys:
            here = found
            for step in key.path[:-1]:
                here = here.setdefault(step, {})
            here[key.path[-1]] = key.format_value(each.image.move(mirror).repository)
    return found


def _is_in(image: ImageReference, mirror: str) -> bool:
    return image.full_repository.startswith(f"{mirror}/")


def _build_command(image: ImageReference, mirror: str, tool: CopyTool) -> str:
    source = image.full_repository + (f"@{image.digest}" if image.digest else f":{image.tag}" if image.tag else "")
    # A registry keeps what has a tag; the digest finds it too.
    tag = image.tag or f"sha256-{image.digest.removeprefix('sha256:')[:12]}"
    target = f"{image.move(mirror).repository}:{tag}"
    if tool == "crane":
        return f"crane copy {shlex.quote(source)} {shlex.quote(target)}"
    options = "--all --preserve-digests"
    return f"skopeo copy {options} {shlex.quote(f'docker://{source}')} {shlex.quote(f'docker://{target}')}"
