"""What a parent chart hands to each of its charts."""

from typing import Annotated

from pydantic import ConfigDict, Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.labels import ObjectName
from rayhelm.deploy.values.common.pods import ImagePullSecret
from rayhelm.facts.closed import Closed

__all__ = ["Globals", "read_registry"]

_LABEL = "[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_HOST = rf"({_LABEL}(\.{_LABEL})+(:[0-9]+)?|{_LABEL}:[0-9]+|localhost)"
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
ImageRegistry = Annotated[str, Field(pattern=rf"^({_HOST}(/{_PART})*)?$", max_length=200)]
"""Host of a registry, with a path in it, or empty. Without a dot or a port, a host is a path of Docker Hub."""


class Globals(Values):
    """Settings of all charts of a parent chart. Keys of other charts are accepted, and have no effect."""

    model_config = ConfigDict(extra="allow")

    image_registry: ImageRegistry = ""
    """Registry of the images, with a path in it: `registry.example/mirror`. Images keep the name of their own registry,
    as `rayhelm images --mirror` copies them: `registry.example/mirror/docker.io/library/haproxy`. Images that are
    already below it stay; so do tags and digests. Empty: each image is pulled from its own registry."""
    image_pull_secrets: list[ImagePullSecret | ObjectName] = []
    """Secrets with registry credentials of all pods, as names or as `name: NAME`. Those of the chart stay."""


def read_registry(values: Closed) -> str:
    """Return the registry of the images of a release; empty if each image has its own."""
    shared = getattr(values, "global_", None)
    return shared.image_registry if isinstance(shared, Globals) else ""
