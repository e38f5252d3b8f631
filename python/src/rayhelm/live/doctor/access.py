"""The rights of the doctor: it lists the kinds that its checks name, and changes nothing."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayhelm.live.cluster.kinds import SECRETS, Kind

if TYPE_CHECKING:
    from rayhelm.deploy.render.files import Rendered

__all__ = ["ACCOUNT", "build_manifests", "build_objects", "build_rules", "describe_rule", "list_kinds", "list_secrets"]

ACCOUNT = "rayhelm-doctor"
"""Name of the ServiceAccount, the ClusterRole and the Roles."""


def build_rules(wanted: Iterable[Kind]) -> list[dict[str, Any]]:
    """Return the rules of a ClusterRole. Secrets are not in it: roles with their names allow single ones."""
    groups: dict[str, set[str]] = defaultdict(set)
    for kind in wanted:
        if kind != SECRETS:
            groups[kind.group].add(kind.plural)
    return [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": ["get", "list"]}
        for group, plurals in sorted(groups.items())
    ]


def describe_rule(wanted: Iterable[Kind]) -> str:
    """Return a ClusterRole with these kinds as YAML, for the account that the doctor runs with."""
    import yaml

    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": ACCOUNT},
        "rules": build_rules(wanted),
    }
    text: str = yaml.safe_dump(role, sort_keys=False, default_flow_style=None, width=120)
    return text.strip()


def list_kinds() -> set[Kind]:
    """Return all kinds that the checks list."""
    from rayhelm.live.doctor.check import load_checks

    return {kind for check in load_checks().values() for kind in check.reads}


def build_manifests(rendered: "Rendered | None", region: str) -> str:
    """Return the objects of `build_objects` as YAML."""
    import yaml

    text: str = yaml.safe_dump_all(build_objects(rendered, region), sort_keys=False, default_flow_style=None, width=120)
    return text.strip()


def build_objects(rendered: "Rendered | None", region: str, namespace: str = "rayhelm-system") -> list[dict[str, Any]]:
    """Return a ServiceAccount with the rights of all checks. With a fleet, also the Roles for its Secrets."""
    metadata = {"name": ACCOUNT, "namespace": namespace}
    subjects = [{"kind": "ServiceAccount", **metadata}]
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": ACCOUNT},
            "rules": build_rules(list_kinds()),
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": subjects,
        },
    ]
    for where, names in list_secrets(rendered, region).items():
        name = f"{ACCOUNT}-secrets"
        rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get"]}
        objects += [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": name, "namespace": where},
                "rules": [rule],
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": where},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                "subjects": subjects,
            },
        ]
    return objects


def list_secrets(rendered: "Rendered | None", region: str) -> dict[str, list[str]]:
    """Return the names of the Secrets that a fleet's pods refer to, by namespace."""
    if not rendered:
        return {}
    from rayhelm.live.cluster.reader import ClusterReader
    from rayhelm.live.cluster.recorded import RecordedTransport
    from rayhelm.live.doctor.checks.secrets import find_wanted
    from rayhelm.live.doctor.facts import Facts

    found: dict[str, list[str]] = {}
    for namespace, name in sorted(find_wanted(Facts(ClusterReader(RecordedTransport({})), rendered, region))):
        found.setdefault(namespace, []).append(name)
    return found
