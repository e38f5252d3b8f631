"""Admission policies: the action of each policy, and its exceptions with their reasons."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.labels import Namespace
from rayhelm.deploy.values.platform.policy_catalog import AboutPolicy, load_policy_catalog
from rayhelm.fleet.repository import MAX_REPOSITORY, REPOSITORY

__all__ = ["Policies", "PolicySettings"]

Reason = Annotated[str, Field(min_length=8)]
"""Reason of an exception, for a later reader."""

Excluded = dict[Namespace, Reason]

Registry = Annotated[str, Field(pattern=f"^{REPOSITORY}/?$", max_length=MAX_REPOSITORY)]
ModelName = Annotated[
    str, Field(pattern=r"^/?[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*$", max_length=255)
]


class PolicySettings(Values):
    """One policy."""

    action: Literal["Deny", "Warn", "Audit", "off"] = "Deny"
    """`Deny` refuses the object. `Warn` warns the client. `Audit` only writes to the audit log. `off` does not install
    the policy. Begin with `Warn` or `Audit` in a cluster whose objects break the policy."""
    reason: str = ""
    """Why the action is not `Deny`; required in that case."""
    excluded_namespaces: Excluded = {}
    """Namespaces that this policy does not check, each with its reason."""


def _build_model(name: str, about: AboutPolicy) -> type[PolicySettings]:
    """Return the model of a policy's settings, with its lists of exceptions."""
    if not about.lists:
        return PolicySettings
    keys = {"models": dict[ModelName, Reason], "registries": dict[Registry, Reason]}
    fields: dict[str, Any] = {
        key: (keys[each.of], Field(default=each.default, description=each.description))
        for key, each in about.lists.items()
    }
    title = "".join(part.title() for part in name.split("-")) + "Policy"
    return create_model(title, __base__=PolicySettings, __doc__=about.description, **fields)


_POLICIES: dict[str, Any] = {
    name.replace("-", "_"): (model := _build_model(name, about), Field(default=model(), description=about.description))
    for name, about in load_policy_catalog().items()
}


class _Excluded(Values):
    excluded_namespaces: Excluded = {"gpu-operator": "its own pods hold GPUs and belong to no tenant"}
    """Namespaces that no policy checks, each with its reason."""


if TYPE_CHECKING:

    class _EachPolicy(_Excluded):
        def __getattr__(self, name: str) -> PolicySettings: ...

else:
    _EachPolicy = create_model("_EachPolicy", __base__=_Excluded, **_POLICIES)


class Policies(_EachPolicy):
    """ValidatingAdmissionPolicies, one for each folder of `policies`. They check objects that are created or whose spec
    changes, and labels of namespaces. They never check deletions, status, or anything in `kube-system`."""
