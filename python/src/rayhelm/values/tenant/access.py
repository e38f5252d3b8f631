"""Who may do what in the namespace."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.common.base import Values

__all__ = ["NamespaceAccess", "RoleSubjects"]

Account = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
Subject = Annotated[str, Field(min_length=1)]


class RoleSubjects(Values):
    """People and programs, as the API server knows them."""

    groups: list[Subject] = []
    """Groups of your identity provider."""
    users: list[Subject] = []
    """Users."""
    service_accounts: list[Account] = []
    """Service accounts of other namespaces, as `<namespace>/<name>`."""


class NamespaceAccess(Values):
    """Rights in the namespace, and in no other. Whoever may edit a RayService decides what its pods run, and pods can
    mount any Secret of the namespace: what a team may not know has no place in there."""

    viewers: RoleSubjects = RoleSubjects()
    """May see everything but Secrets: services, pods, their logs and events, configuration, what is left of the
    quota."""
    editors: RoleSubjects = RoleSubjects()
    """May also make, change and delete RayServices, and nothing else."""
    deployers: RoleSubjects = RoleSubjects()
    """May install releases of `ray-service`: everything that the chart renders, and Secrets, in which Helm keeps its
    releases. For pipelines, not for people: NetworkPolicies and Jobs are among it."""
