"""The life of a tenant under both Helms, beside what test_releases.py finds of every chart: who makes its namespace,
what an uninstall leaves, what others have set."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm, Refused
from cluster.kit.stillness import at_rest, touches
from cluster.kit.tenants import Tenant, tenant
from cluster.kit.wait import eventually

WALLS = {
    "LimitRange {}",
    "NetworkPolicy {}-default-deny",
    "NetworkPolicy {}-dns",
    "ResourceQuota {}",
    "ResourceQuota {}-denied",
    "ResourceQuota {}-other-priority",
}
RIGHTS = {f"{kind} {{}}-{role}" for kind in ("Role", "RoleBinding") for role in ("viewer", "editor", "deployer")}


@pytest.fixture(scope="module")
def releases(cluster: Cluster) -> Iterator[str]:
    """Where the releases of the chart lie."""
    with cluster.namespace() as name:
        yield name


@pytest.fixture
def fresh(cluster: Cluster, each_helm: Helm, releases: str) -> Iterator[Tenant]:
    """One whose namespace does not exist."""
    team = Tenant(cluster, each_helm, f"team-{uuid.uuid4().hex[:8]}", releases)
    yield team
    cluster.delete("namespace", team.namespace)


def named(pattern: set[str], team: Tenant) -> set[str]:
    return {line.format(team.name) for line in pattern}


def labels(team: Tenant) -> Object:
    found: Object = team.cluster.one("Namespace", team.namespace)["metadata"]["labels"]
    return found


def is_walled(team: Tenant) -> bool:
    account = team.cluster.one("ServiceAccount", "default", team.namespace)
    return (
        labels(team)["pod-security.kubernetes.io/enforce"] == "restricted"
        and account.get("automountServiceAccountToken") is False
        and set(touches(team.cluster, team.namespace)) == named(WALLS | RIGHTS, team)
    )


def test_existing_namespace_is_adopted_with_its_labels(cluster: Cluster, each_helm: Helm, releases: str) -> None:
    with cluster.namespace({"of": "others"}) as name:
        team = Tenant(cluster, each_helm, name, releases)
        with pytest.raises(Refused, match="cannot be imported into the current release"):
            team.install()
        team.install(None, "--take-ownership")
        assert is_walled(team)
        assert labels(team)["of"] == "others"


def test_helm_4_makes_the_namespace_and_helm_3_does_in_two_steps(fresh: Tenant) -> None:
    """Kubernetes is quicker than Helm 3 in making the account `default`, unless the computer is slow."""
    if fresh.helm.major == "3":
        with suppress_refused('serviceaccounts "default" already exists'):
            fresh.install()
    fresh.install()
    assert is_walled(fresh)


@contextmanager
def suppress_refused(words: str) -> Iterator[None]:
    """Wait until Helm prints the text or exits."""
    try:
        yield
    except Refused as error:
        if words not in str(error):
            raise


def test_release_inside_of_the_namespace_that_it_makes_is_refused(fresh: Tenant) -> None:
    inside = Tenant(fresh.cluster, fresh.helm, fresh.name, fresh.name)
    with pytest.raises(Refused, match="namespace-release"):
        inside.install(None, "--create-namespace")


def test_uninstall_removes_rights_and_keeps_bounds_and_objects(
    cluster: Cluster, each_helm: Helm, releases: str
) -> None:
    with tenant(cluster, each_helm, releases) as team:
        cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}, namespace=team.namespace
        )
        within = at_rest(cluster, team.namespace)
        assert team.viewer.may(team.namespace, "list", "pods")
        each_helm.uninstall(team.name, releases)
        kept = named(WALLS, team) | {"ConfigMap theirs"}
        left = eventually(
            lambda: set(found := touches(cluster, team.namespace)) == kept and found,
            "the rights being gone",
            shows=lambda: touches(cluster, team.namespace),
        )
        assert left == {name: within[name] for name in left}
        assert labels(team)["pod-security.kubernetes.io/enforce"] == "restricted"
        eventually(lambda: not team.viewer.may(team.namespace, "list", "pods"), "the viewer having no rights")
        team.install()
        again = touches(cluster, team.namespace)
        assert set(again) == set(within)
        assert {name: again[name].split()[0] for name in left} == {name: left[name].split()[0] for name in left}
        eventually(lambda: team.viewer.may(team.namespace, "list", "pods"), "the viewer having rights again")


def test_existing_label_is_overwritten_on_request(cluster: Cluster, each_helm: Helm, releases: str) -> None:
    with cluster.namespace({"pod-security.kubernetes.io/enforce": "privileged"}) as name:
        team = Tenant(cluster, each_helm, name, releases)
        options = ["--take-ownership"]
        if each_helm.major == "4":
            with pytest.raises(Refused, match=r"(?s)conflict.*pod-security.kubernetes.io/enforce"):
                team.install(None, *options)
            options += ["--force-conflicts"]
        team.install(None, *options)
        assert is_walled(team)
        team.install()
        assert is_walled(team)


def test_two_releases_do_not_share_a_namespace(cluster: Cluster, each_helm: Helm, releases: str) -> None:
    with tenant(cluster, each_helm, releases) as team:
        other = Tenant(cluster, each_helm, f"{team.name}-2", releases)
        with pytest.raises(Refused, match="cannot be imported into the current release"):
            other.install({"namespace": {"name": team.namespace}})
