"""Observations of edits: built from events of the API server, with equal names and counts in every run."""

from typing import Any

import pytest

from cluster.edits.build_observation import build_observation
from cluster.edits.normalize import rename_all, strip_status
from cluster.edits.reconciled import is_done, is_reconciled
from cluster.edits.recorder import Event
from cluster.edits.service_state import get_state
from rayhelm.check.forecast.differences import list_changes
from testbed.ray_stand_in.memory import Put

Object = dict[str, Any]
CONFIG = "applications: [{name: chat}]"
TRAFFIC = {"ray.io/serve": "true"}


class History:
    """Events of an API server, in the order of their versions."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def now(self) -> int:
        return len(self.events)

    def add(self, kind: str, item: Object, *, removed: bool = False) -> None:
        self.events.append(Event(self.now + 1, kind, removed, 0.0, item))

    def service(
        self, active: str, pending: str = "", *, ready: str = "True", config: str = CONFIG, endpoints: int = 1
    ) -> None:
        upgrading = "BothActivePendingClustersExist" if pending else "NoPendingCluster"
        status = {
            "activeServiceStatus": {"rayClusterName": active},
            "pendingServiceStatus": {"rayClusterName": pending},
            "numServeEndpoints": endpoints,
            "conditions": [
                {"type": "Ready", "status": ready, "reason": "NonZeroServeEndpoints", "message": "words"},
                {"type": "UpgradeInProgress", "status": str(bool(pending)), "reason": upgrading},
            ],
        }
        spec = {"serveConfigV2": config, "rayClusterConfig": {}}
        self.add("RayService", {"metadata": named("rs"), "spec": spec, "status": status})

    def traffic(self, cluster: str) -> None:
        self.add(
            "Service", {"metadata": named("rs-serve-svc"), "spec": {"selector": {"ray.io/cluster": cluster, **TRAFFIC}}}
        )

    def cluster(self, name: str, version: str = "2.60.0", *, removed: bool = False, least: int = 1) -> None:
        annotations = {"ray.io/hash-without-replicas-and-workers-to-delete": f"hash of {version}"}
        groups = [{"groupName": "gpu", "minReplicas": least, "maxReplicas": 4}]
        item = {
            "metadata": {**named(name), "annotations": annotations},
            "spec": {"rayVersion": version, "workerGroupSpecs": groups},
            "status": {"conditions": [{"type": "HeadPodReady", "status": "True"}]},
        }
        self.add("RayCluster", item, removed=removed)

    def pods(self, cluster: str, *, removed: bool = False, node: str = "node", ready: str = "True") -> None:
        """A head, and a worker with a GPU that receives traffic."""
        self.pod(cluster, "head", 0, removed=removed, node=node, ready=ready)
        self.pod(cluster, "gpu", 1, removed=removed, node=node, ready=ready)

    def pod(
        self, cluster: str, group: str, gpus: int, *, removed: bool = False, node: str = "node", ready: str = "True"
    ) -> None:
        kind = {"ray.io/node-type": "head"} if group == "head" else {"ray.io/node-type": "worker", **TRAFFIC}
        labels = {"ray.io/cluster": cluster, "ray.io/group": group, **kind}
        requests = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        item = {
            "metadata": {**named(f"{cluster}-{group}"), "labels": labels},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
        }
        if not node:
            item["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        self.add("Pod", item, removed=removed)


def named(name: str) -> Object:
    return {"name": name, "uid": f"uid-{name}", "labels": {}, "annotations": {}}


@pytest.fixture
def history() -> History:
    """A RayService that is Ready, with one cluster with one GPU."""
    history = History()
    history.service("rs-abcde")
    history.cluster("rs-abcde")
    history.pods("rs-abcde")
    history.traffic("rs-abcde")
    return history


def put(cluster: str, config: Any, status: int = 200) -> Put:
    return Put(time=1.0, cluster=cluster, head="uid", status=status, answer="", body=config)


def upgrade(history: History, *, ends: bool = True) -> int:
    """Another cluster takes over. Returns the version before it."""
    mark = history.now
    history.service("rs-abcde", "rs-fghij")
    history.cluster("rs-fghij", "2.60.1")
    history.pods("rs-fghij")
    if ends:
        history.traffic("rs-fghij")
        history.service("rs-fghij")
        history.pods("rs-abcde", removed=True)
        history.cluster("rs-abcde", removed=True)
    return mark


# -- observations ------------------------------------------------------------------------------------------------


def test_outcome_is_nothing_without_events(history: History) -> None:
    found = build_observation(history.events, history.now)
    assert (found.outcome, found.hash, found.changed, found.puts) == ("nothing", "kept", {}, ())
    assert found.conditions == ("Ready True NonZeroServeEndpoints", "UpgradeInProgress False NoPendingCluster")


def test_outcome_is_new_cluster_with_gpus_of_both_clusters(history: History) -> None:
    found = build_observation(history.events, upgrade(history))
    assert (found.outcome, found.active_clusters, found.hash) == ("new cluster", ("<rs>-1", "<rs>-2"), "changed")
    assert (found.clusters.during, found.clusters.after) == (2, 1)
    assert (found.gpus.before, found.gpus.during, found.gpus.after) == (1, 2, 1)
    assert (found.endpoints.during, found.endpoints.after) == (1, 1)
    assert found.pods["gpu"].model_dump() == {"kept": 0, "added": 1, "removed": 1}
    assert found.changed["RayCluster <rs>-1 -> <rs>-2"] == {"spec.rayVersion": ("2.60.0", "2.60.1")}
    assert found.changed["Service <rs>-serve-svc"] == {"spec.selector[ray.io/cluster]": ("<rs>-1", "<rs>-2")}


def test_outcome_is_waiting_when_the_new_cluster_does_not_take_over(history: History) -> None:
    found = build_observation(history.events, upgrade(history, ends=False))
    assert (found.outcome, found.hash, found.gpus.after) == ("new cluster, waiting", "kept", 2)


def test_endpoints_has_the_minimum(history: History) -> None:
    mark = history.now
    history.pod("rs-abcde", "gpu", 1, ready="False")
    history.pod("rs-abcde", "head", 0, ready="False")
    history.pods("rs-abcde")
    found = build_observation(history.events, mark)
    assert (found.endpoints.before, found.endpoints.during, found.endpoints.after) == (1, 0, 1)


def test_pod_without_a_node_uses_no_gpu(history: History) -> None:
    mark = history.now
    history.cluster("rs-fghij")
    history.pods("rs-fghij", node="")
    assert build_observation(history.events, mark).gpus.during == 1


def test_outcome_is_in_place_when_the_active_cluster_changes(history: History) -> None:
    mark = history.now
    history.cluster("rs-abcde", "2.60.1")
    found = build_observation(history.events, mark)
    assert (found.outcome, found.hash) == ("in place", "changed")
    assert found.changed == {"RayCluster <rs>-1": {"spec.rayVersion": ("2.60.0", "2.60.1")}}


def test_conditions_has_every_change(history: History) -> None:
    mark = history.now
    history.service("rs-abcde", ready="False")
    history.service("rs-abcde")
    assert build_observation(history.events, mark).conditions[2:] == (
        "Ready False NonZeroServeEndpoints",
        "Ready True NonZeroServeEndpoints",
    )


def test_puts_are_first_edited_or_other(history: History) -> None:
    mark = history.now
    history.service("rs-abcde", config="applications: []")
    first, edited = {"applications": [{"name": "chat"}]}, {"applications": []}
    puts = [put("rs-abcde", first), *[put("rs-abcde", edited, 400)] * 2, put("rs-abcde", {"other": 1})]
    found = build_observation(history.events, mark, puts)
    assert found.outcome == "serve config"
    assert [(item.config, item.status, item.repeated) for item in found.puts] == [
        ("first", 200, False),
        ("edited", 400, True),
        ("other", 200, False),
    ]
    assert found.changed == {"RayService": {"spec.serveConfigV2": (CONFIG, "applications: []")}}


def test_refused_edit_has_the_message(history: History) -> None:
    found = build_observation(history.events, history.now, messages=['RayService "rs" is invalid'], is_refused=True)
    assert (found.outcome, found.messages) == ("refused", ('RayService "<rs>" is invalid',))


# -- when the operator has reconciled ----------------------------------------------------------------------------------


def test_ready_service_is_done(history: History) -> None:
    assert is_reconciled(get_state(history.events))
    assert is_done(get_state(history.events))


@pytest.mark.parametrize("what", ["pod", "gpu", "head"])
def test_cluster_without_its_pods_is_not_reconciled(history: History, what: str) -> None:
    if what == "pod":
        history.cluster("rs-fghij")
    elif what == "gpu":
        history.cluster("rs-abcde", least=2)
    else:
        history.pod("rs-abcde", "head", 0, removed=True)
    assert not is_reconciled(get_state(history.events))


def test_invalid_cluster_is_reconciled_without_pods(history: History) -> None:
    history.cluster("rs-fghij")
    assert is_reconciled(get_state(history.events), invalid={"rs-fghij"})


def test_pods_of_a_removed_cluster_are_not_reconciled(history: History) -> None:
    history.cluster("rs-abcde", removed=True)
    assert not is_reconciled(get_state(history.events))


def test_upgrade_with_an_unschedulable_pod_is_reconciled_but_not_done(history: History) -> None:
    history.service("rs-abcde", "rs-fghij")
    history.cluster("rs-fghij")
    history.pod("rs-fghij", "head", 0)
    history.pod("rs-fghij", "gpu", 1, node="")
    assert is_reconciled(get_state(history.events))
    assert not is_done(get_state(history.events))


def test_service_with_a_wrong_endpoint_count_is_not_done(history: History) -> None:
    history.service("rs-abcde", endpoints=3)
    assert not is_done(get_state(history.events))


# -- comparison of two objects ------------------------------------------------------------------------------------


def test_list_changes_compares_lists_by_name() -> None:
    before = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    after = {"env": [{"name": "A", "value": "1"}, {"name": "C", "value": "3"}]}
    assert list_changes(before, after) == {
        "env[B]": ({"name": "B", "value": "2"}, None),
        "env[C]": (None, {"name": "C", "value": "3"}),
    }


def test_list_changes_reports_the_order() -> None:
    before, after = [{"name": "A"}, {"name": "B"}], [{"name": "B"}, {"name": "A"}]
    assert list_changes(before, after, "env") == {"env (order)": (["A", "B"], ["B", "A"])}
    assert "env (order)" in list_changes(before, [{"name": "C"}, *before], "env")
    assert "env (order)" not in list_changes(before, [*before, {"name": "C"}], "env")


def test_list_changes_compares_json_texts_as_json() -> None:
    assert list_changes({"c": '{"a": 1}'}, {"c": '{"a": 2}'}) == {"c.a": (1, 2)}
    assert list_changes({"c": '{"a": 1}'}, {"c": '{"a": 1} '}) == {"c": ('{"a": 1}', '{"a": 1} ')}


def test_list_changes_counts_fields_of_large_objects() -> None:
    assert list_changes({}, {"group": {str(n): n for n in range(9)}}) == {"group": (None, "9 fields")}


def test_list_changes_distinguishes_empty_and_missing() -> None:
    assert list_changes({}, {"rayStartParams": {}}) == {"rayStartParams": (None, {})}


def test_strip_status_removes_generated_values() -> None:
    item = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "annotations": {"a": "b"}}, "spec": {"x": 1}}
    assert strip_status(item) == {"metadata": {"name": "a", "annotations": {"a": "b"}}, "spec": {"x": 1}}


def test_rename_all_replaces_whole_names() -> None:
    names = {"e-image": "<rs>", "e-image-x7k2p": "<rs>-1"}
    text = "e-image-x7k2p-head of e-image, not e-images nor the-image"
    assert rename_all(text, names) == "<rs>-1-head of <rs>, not e-images nor the-image"
