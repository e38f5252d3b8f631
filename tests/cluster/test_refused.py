"""What the chart refuses at render is indeed refused, or breaks, in a cluster; and nothing that it renders is.

data/refused.yaml has the owner of every rule, and the result for rules of Kubernetes and KubeRay.
"""

from collections.abc import Iterator

import pytest
from packaging.version import Version

from charts.kit import VALUES
from charts.unguarded import unguarded_chart
from cluster.kit.cluster import Cluster, condition, reason
from cluster.kit.endings import ENDINGS, NOT_READY, Written, edit
from cluster.kit.past_the_chart import Manuscript, write
from cluster.kit.refused import CHART, Case, cases, not_in
from cluster.kit.wait import stays
from testbed.nodes import cpu_nodes

CASES = [(f"{rule}-{number}", rule, case) for number, (rule, _, case) in enumerate(cases())]
IDS = [f"{rule}-{name.replace(' ', '-')}" for rule, name, _ in cases()]
SOUND = ("sound", "edited")
EXAMPLES = sorted(path.stem for path in VALUES.glob("*.yaml"))
HERE = {"suspend": False, "aliases": None}
"""Awake, and without aliases: their clients would have to be in the namespace of the test."""
ONLY_1_7_0 = {"upgrade": {"strategy": "NewCluster"}, "workerGroups": {"fast": {"priority": None}}}
"""Taken out of the fullest example for an operator that does not know it: the chart would refuse it."""


@pytest.fixture(scope="module")
def written(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Written]]:
    """Every case that the operator under test has a rule for, every example, and some that nothing is wrong with."""
    unguarded = unguarded_chart(tmp_path_factory.mktemp("unguarded"))
    kuberay = cluster.place.kuberay
    manuscripts = [Manuscript(name, CHART, {}) for name in SOUND]
    manuscripts += [
        Manuscript(name, unguarded, {} if case.change else case.values, case)
        for name, rule, case in CASES
        if not not_in(kuberay, rule, case)
    ]
    for name in EXAMPLES:
        older = name == "everything" and Version(kuberay) < Version("1.7.0")
        manuscripts.append(Manuscript(name, CHART, HERE | (ONLY_1_7_0 if older else {}), base=name))
    with cluster.machines(cpu_nodes(4, cpus=64, memory_gib=256)), cluster.namespace() as namespace:
        yield write(cluster, namespace, manuscripts)


@pytest.mark.parametrize(("name", "rule", "case"), CASES, ids=IDS)
def test_service_that_the_chart_refuses_is_refused_or_breaks(
    written: dict[str, Written], cluster: Cluster, name: str, rule: str, case: Case
) -> None:
    if why := not_in(cluster.place.kuberay, rule, case):
        pytest.skip(why)
    it = written[name]
    assert bool(it.refusal) == (case.seen == "refused"), it.refusal or "the API server took it"
    ENDINGS[case.seen](it, case.says)


def test_broken_service_does_not_become_ready(written: dict[str, Written]) -> None:
    broken = [written[name] for name, _, case in CASES if case.seen in NOT_READY and name in written]
    assert broken
    stays(lambda: not [it.name for it in broken if it.is_ready()], "what is broken is not Ready")


def test_unbroken_service_becomes_ready(written: dict[str, Written]) -> None:
    sound = written["sound"]
    sound.waits_for(sound.is_ready, "being Ready")


def test_edit_of_an_unbroken_service_creates_a_new_cluster(written: dict[str, Written]) -> None:
    """What `same-cluster` is held against."""
    edited = written["edited"]
    edited.waits_for(edited.is_ready, "being Ready")
    before = {item["metadata"]["name"] for item in edited.ray_clusters}
    edit(edited)
    edited.waits_for(lambda: {item["metadata"]["name"] for item in edited.ray_clusters} - before, "a new cluster")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_taken_by_the_operator(written: dict[str, Written], name: str) -> None:
    it = written[name]
    assert not it.refusal

    def taken() -> bool:
        assert reason(it.service, "Ready") != "ValidationFailed", it.service["status"]
        return any(condition(item, "HeadPodReady") for item in it.ray_clusters)

    it.waits_for(taken, "its RayCluster being looked at")
    assert not [item["message"] for item in it.events() if item["reason"].startswith("Invalid")]
