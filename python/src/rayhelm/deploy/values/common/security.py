"""Users and groups of pods."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from rayhelm.deploy.values.common.base import Values

__all__ = ["PodSecurityContext"]

_LARGEST = 2**31 - 1
_OR_NULL: JsonDict = {"type": ["integer", "null"]}
"""The schema then admits a key that Helm removed because it was null."""
User = Annotated[Annotated[int, Field(ge=1, le=_LARGEST)] | None, Field(json_schema_extra=_OR_NULL)]
Group = Annotated[Annotated[int, Field(ge=0, le=_LARGEST)] | None, Field(json_schema_extra=_OR_NULL)]


class PodSecurityContext(Values):
    """User and groups. `null` leaves one out, and the cluster sets it: OpenShift gives each namespace its users. The
    chart sets all else, and refuses other keys."""

    model_config = ConfigDict(extra="allow")

    run_as_user: User = None
    """User, never root. Default: that of the image. `null`: the cluster or the image sets it."""
    run_as_group: Group = None
    """Group. Default: that of the image. `null`: the cluster or the image sets it."""
    fs_group: Group = None
    """Group of the files in volumes. `null`: the cluster sets it, or volumes keep their group."""
