"""AppProjects: which kinds the Applications may install."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Text, Values

__all__ = ["ExtraKind", "Project"]


class ExtraKind(Values):
    """A kind beside those of the charts."""

    cluster_scoped: bool
    """Objects of the kind have no namespace."""
    project: Literal["services", "platform", "operators"]
    """AppProject that may install it."""
    reason: Text
    """Why it is needed."""


class Project(Values):
    """Three AppProjects: `<release>-operators`; `<release>-platform` for the charts `platform` and `tenant`; and
    `<release>-services` for `ray-service` and `gateway`, which may install no object of the whole cluster but a
    namespace."""

    extra_kinds: dict[Annotated[str, Field(pattern=r"^([a-z0-9.-]+/)?[A-Z][A-Za-z0-9]*$")], ExtraKind] = {}
    """Other kinds that may be installed, as `<API group>/<kind>`; a kind of the core group has no group."""
