"""Each chart's life on a real API server, under Helm 3 and Helm 4: install, upgrade, rollback, uninstall."""

from collections.abc import Iterator

import pytest

from cluster.kit.charts import CHARTS, PLACE
from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm
from cluster.kit.releases import Chart, Release, released
from cluster.kit.stillness import at_rest, touches
from cluster.kit.wait import eventually, stays
from rayhelm.deploy.charts.helm import render


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(PLACE.machines()):
        yield


@pytest.fixture(scope="module", params=CHARTS, ids=str)
def chart(request: pytest.FixtureRequest) -> Chart:
    found: Chart = request.param
    return found


@pytest.fixture(scope="module", params=["4", "3"], ids=["helm4", "helm3"])
def lasting(request: pytest.FixtureRequest, chart: Chart, cluster: Cluster) -> Iterator[Release]:
    """A release that some tests share: none of them takes it away, or hands it to another Helm."""
    helm = Helm.of_major(request.param, cluster.place.kubeconfig)
    with released(chart, helm, cluster) as release:
        yield release


@pytest.fixture
def release(lasting: Release) -> Release:
    """As it was installed, and ready."""
    lasting.upgrade()
    lasting.becomes_ready()
    return lasting


def test_install_notes_are_the_same_in_both_helms(release: Release) -> None:
    said = release.upgrade().partition("\nNOTES:\n")[2]
    assert release.chart.says(release) in said
    dry = Helm.of_major("4", release.helm.kubeconfig)
    assert said.strip() == release.upgrade(None, "--dry-run=client", helm=dry).partition("\nNOTES:\n")[2].strip()


def test_upgrade_with_the_same_values_changes_nothing(release: Release) -> None:
    before = at_rest(release.cluster, release.namespace)
    release.upgrade()
    stays(lambda: touches(release.cluster, release.namespace) == before, f"{release.namespace} is as it was", seconds=5)
    assert touches(release.cluster, release.namespace) == before


@pytest.mark.parametrize("edit", ["in place", "of the pods"])
def test_rollback_reverts_an_edit(release: Release, edit: str) -> None:
    before, revision = eventually(release.shows, "what runs"), release.revision
    release.upgrade(release.chart.edits[edit](release.values))
    eventually(lambda: release.shows() not in (None, before), f"the edit {edit} being seen")
    release.becomes_ready()
    release.helm.rollback(release.name, release.namespace, revision)
    eventually(lambda: release.shows() == before, f"the edit {edit} being taken back")
    release.becomes_ready()


def test_release_of_helm_3_can_be_upgraded_by_helm_4_and_back(chart: Chart, cluster: Cluster) -> None:
    first, other = (Helm.of_major(major, cluster.place.kubeconfig) for major in ("3", "4"))
    with released(chart, first, cluster) as release:
        before, shown = at_rest(cluster, release.namespace), eventually(release.shows, "what runs")
        release.upgrade(helm=other)
        stays(lambda: touches(cluster, release.namespace) == before, f"Helm {other.major} touches nothing", seconds=5)
        edited = release.chart.edits["in place"](release.values)
        release.upgrade(edited, helm=other)
        eventually(lambda: release.shows() not in (None, shown), f"the edit of Helm {other.major} being seen")
        release.upgrade()
        eventually(lambda: release.shows() == shown, f"the edit of Helm {first.major} being seen")
        release.becomes_ready()


def test_install_adopts_the_objects_that_uninstall_keeps(chart: Chart, cluster: Cluster, each_helm: Helm) -> None:
    with released(chart, each_helm, cluster) as release:
        kept = {name: uid for name, uid in uids(release).items() if name in chart.outlives}
        assert set(kept) == set(chart.outlives)
        each_helm.uninstall(release.name, release.namespace)
        eventually(lambda: uids(release) == kept, f"{set(kept)} being all that is left", shows=lambda: uids(release))
        release.upgrade()
        release.becomes_ready()
        again = uids(release)
        assert {name: again[name] for name in kept} == kept


def uids(release: Release) -> dict[str, str]:
    """Of everything, by `<kind> <name>`."""
    return {name: touch.split()[0] for name, touch in touches(release.cluster, release.namespace).items()}


def test_manifests_can_be_applied_twice_from_the_server_side(chart: Chart, cluster: Cluster, namespace: str) -> None:
    """As GitOps does: other field managers may not be asked to give way."""
    release = Release(chart, Helm.of_major("4", cluster.place.kubeconfig), cluster, namespace)
    manifests = render(chart.name, release.name, namespace, release.values, options=["--no-hooks"])
    apply = ["apply", "--server-side", f"--namespace={namespace}", "--filename=-"]
    cluster.kubectl(*apply, text=manifests)
    release.becomes_ready()
    before = at_rest(cluster, namespace)
    cluster.kubectl(*apply, text=manifests)
    stays(lambda: touches(cluster, namespace) == before, f"{namespace} is as it was", seconds=5)
