"""Rights in the namespace."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Values

__all__ = ["NamespaceAccess", "RoleSubjects"]

Account = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
Subject = Annotated[str, Field(min_length=1)]


class RoleSubjects(Values):
    """Users, groups and service accounts that get a role."""

    groups: list[Subject] = []
    """Groups of the identity provider."""
    users: list[Subject] = []
    """Users, by the name that the API server sees."""
    service_accounts: list[Account] = []
    """Service accounts of other namespaces, as `<namespace>/<name>`."""


class NamespaceAccess(Values):
    """Rights in the namespace and in no other. A person who may edit a RayService decides what its pods run, and pods
    can mount any Secret of the namespace: do not store anything there that the team must not read."""

    viewers: RoleSubjects = RoleSubjects()
    """May see everything but Secrets: services, pods, their logs and events, configuration, the use of the quota."""
    editors: RoleSubjects = RoleSubjects()
    """May also create, change and delete RayServices."""
    deployers: RoleSubjects = RoleSubjects()
    """May install releases of `ray-service`: all objects that the chart renders, and Secrets, Helm's store of releases.
    For pipelines, not for people: it includes NetworkPolicies and Jobs."""
