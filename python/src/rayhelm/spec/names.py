"""Names that become Kubernetes names. They are never cut: one that is too long is refused."""

from typing import Annotated

from pydantic import AfterValidator, Field

__all__ = ["MAX_SERVICE_NAME", "Name"]

MAX_SERVICE_NAME = 47
"""KubeRay's limit for a RayService: it appends to the name, and a Service has 63 characters."""

_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"


def _short(name: str) -> str:
    if len(name) > MAX_SERVICE_NAME:
        raise ValueError(
            f"`{name}` has {len(name)} characters; KubeRay allows {MAX_SERVICE_NAME}, and rayhelm never cuts a name"
        )
    return name


Name = Annotated[str, Field(pattern=_PATTERN), AfterValidator(_short)]
"""DNS-1035 label of at most 47 characters."""
