"""From what an API server tells of a RayService to a row of the table: counted and named alike in every run."""

from typing import Any

import pytest

from cluster.edits.dump import changes, renamed, stored
from cluster.edits.observe import observe
from cluster.edits.recorder import Event
from cluster.edits.rest import is_done, is_settled
from cluster.edits.story import state_at
from testbed.ray_stand_in.memory import Put

Object = dict[str, Any]
CONFIG = "applications: [{name: chat}]"
TRAFFIC = {"ray.io/serve": "true"}


class Tale:
    """Events as they would be heard, one version after the other."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def now(self) -> int:
        return len(self.events)

    def tell(self, kind: str, item: Object, *, gone: bool = False) -> None:
        self.events.append(Event(self.now + 1, kind, gone, 0.0, item))

    def service(
        self, active: str, pending: str = "", *, ready: str = "True", config: str = CONFIG, said: int = 1
    ) -> None:
        upgrading = "BothActivePendingClustersExist" if pending else "NoPendingCluster"
        status = {
            "activeServiceStatus": {"rayClusterName": active},
            "pendingServiceStatus": {"rayClusterName": pending},
            "numServeEndpoints": said,
            "conditions": [
                {"type": "Ready", "status": ready, "reason": "NonZeroServeEndpoints", "message": "words"},
                {"type": "UpgradeInProgress", "status": str(bool(pending)), "reason": upgrading},
            ],
        }
        spec = {"serveConfigV2": config, "rayClusterConfig": {}}
        self.tell("RayService", {"metadata": named("rs"), "spec": spec, "status": status})

    def traffic(self, cluster: str) -> None:
        self.tell(
            "Service", {"metadata": named("rs-serve-svc"), "spec": {"selector": {"ray.io/cluster": cluster, **TRAFFIC}}}
        )

    def cluster(self, name: str, version: str = "2.60.0", *, gone: bool = False, least: int = 1) -> None:
        annotations = {"ray.io/hash-without-replicas-and-workers-to-delete": f"hash of {version}"}
        groups = [{"groupName": "gpu", "minReplicas": least, "maxReplicas": 4}]
        item = {
            "metadata": {**named(name), "annotations": annotations},
            "spec": {"rayVersion": version, "workerGroupSpecs": groups},
            "status": {"conditions": [{"type": "HeadPodReady", "status": "True"}]},
        }
        self.tell("RayCluster", item, gone=gone)

    def pods(self, cluster: str, *, gone: bool = False, node: str = "node", ready: str = "True") -> None:
        """A head, and a worker with a card that gets traffic."""
        self.pod(cluster, "head", 0, gone=gone, node=node, ready=ready)
        self.pod(cluster, "gpu", 1, gone=gone, node=node, ready=ready)

    def pod(
        self, cluster: str, group: str, cards: int, *, gone: bool = False, node: str = "node", ready: str = "True"
    ) -> None:
        kind = {"ray.io/node-type": "head"} if group == "head" else {"ray.io/node-type": "worker", **TRAFFIC}
        labels = {"ray.io/cluster": cluster, "ray.io/group": group, **kind}
        requests = {"nvidia.com/gpu": str(cards)} if cards else {}
        item = {
            "metadata": {**named(f"{cluster}-{group}"), "labels": labels},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
        }
        if not node:
            item["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        self.tell("Pod", item, gone=gone)


def named(name: str) -> Object:
    return {"name": name, "uid": f"uid-{name}", "labels": {}, "annotations": {}}


@pytest.fixture
def tale() -> Tale:
    """A RayService that is Ready, with one cluster of one card."""
    tale = Tale()
    tale.service("rs-abcde")
    tale.cluster("rs-abcde")
    tale.pods("rs-abcde")
    tale.traffic("rs-abcde")
    return tale


def put(cluster: str, config: Any, status: int = 200) -> Put:
    return Put(time=1.0, cluster=cluster, head="uid", status=status, answer="", body=config)


def upgrade(tale: Tale, *, ends: bool = True) -> int:
    """Another cluster, which takes over; returns where it begins."""
    mark = tale.now
    tale.service("rs-abcde", "rs-fghij")
    tale.cluster("rs-fghij", "2.60.1")
    tale.pods("rs-fghij")
    if ends:
        tale.traffic("rs-fghij")
        tale.service("rs-fghij")
        tale.pods("rs-abcde", gone=True)
        tale.cluster("rs-abcde", gone=True)
    return mark


# -- what is observed ------------------------------------------------------------------------------------------------


def test_nothing_is_nothing(tale: Tale) -> None:
    found = observe(tale.events, tale.now)
    assert (found.outcome, found.hash, found.changed, found.puts) == ("nothing", "kept", {}, ())
    assert found.conditions == ("Ready True NonZeroServeEndpoints", "UpgradeInProgress False NoPendingCluster")


def test_a_switch_is_a_new_cluster_with_both_clusters_cards_on_the_way(tale: Tale) -> None:
    found = observe(tale.events, upgrade(tale))
    assert (found.outcome, found.serves, found.hash) == ("new cluster", ("<rs>-1", "<rs>-2"), "changed")
    assert (found.clusters.on_the_way, found.clusters.after) == (2, 1)
    assert (found.gpus.before, found.gpus.on_the_way, found.gpus.after) == (1, 2, 1)
    assert (found.endpoints.on_the_way, found.endpoints.after) == (1, 1)
    assert found.pods["gpu"].model_dump() == {"kept": 0, "added": 1, "gone": 1}
    assert found.changed["RayCluster <rs>-1 -> <rs>-2"] == {"spec.rayVersion": ("2.60.0", "2.60.1")}
    assert found.changed["Service <rs>-serve-svc"] == {"spec.selector[ray.io/cluster]": ("<rs>-1", "<rs>-2")}


def test_a_cluster_that_does_not_take_over_waits(tale: Tale) -> None:
    found = observe(tale.events, upgrade(tale, ends=False))
    assert (found.outcome, found.hash, found.gpus.after) == ("new cluster, waiting", "kept", 2)


def test_a_moment_without_an_endpoint_is_seen(tale: Tale) -> None:
    mark = tale.now
    tale.pod("rs-abcde", "gpu", 1, ready="False")
    tale.pod("rs-abcde", "head", 0, ready="False")
    tale.pods("rs-abcde")
    found = observe(tale.events, mark)
    assert (found.endpoints.before, found.endpoints.on_the_way, found.endpoints.after) == (1, 0, 1)


def test_a_pod_without_a_node_holds_no_card(tale: Tale) -> None:
    mark = tale.now
    tale.cluster("rs-fghij")
    tale.pods("rs-fghij", node="")
    assert observe(tale.events, mark).gpus.on_the_way == 1


def test_an_edited_cluster_that_serves_on_is_in_place(tale: Tale) -> None:
    mark = tale.now
    tale.cluster("rs-abcde", "2.60.1")
    found = observe(tale.events, mark)
    assert (found.outcome, found.hash) == ("in place", "changed")
    assert found.changed == {"RayCluster <rs>-1": {"spec.rayVersion": ("2.60.0", "2.60.1")}}


def test_a_condition_that_comes_and_goes_is_told(tale: Tale) -> None:
    mark = tale.now
    tale.service("rs-abcde", ready="False")
    tale.service("rs-abcde")
    assert observe(tale.events, mark).conditions[2:] == (
        "Ready False NonZeroServeEndpoints",
        "Ready True NonZeroServeEndpoints",
    )


def test_what_ray_is_told_is_named_by_the_edit(tale: Tale) -> None:
    mark = tale.now
    tale.service("rs-abcde", config="applications: []")
    first, edited = {"applications": [{"name": "chat"}]}, {"applications": []}
    puts = [put("rs-abcde", first), *[put("rs-abcde", edited, 400)] * 2, put("rs-abcde", {"other": 1})]
    found = observe(tale.events, mark, puts)
    assert found.outcome == "serve config"
    assert [(item.config, item.status, item.again_and_again) for item in found.puts] == [
        ("first", 200, False),
        ("edited", 400, True),
        ("other", 200, False),
    ]
    assert found.changed == {"RayService": {"spec.serveConfigV2": (CONFIG, "applications: []")}}


def test_a_refused_edit_tells_the_words(tale: Tale) -> None:
    found = observe(tale.events, tale.now, said=['RayService "rs" is invalid'], is_refused=True)
    assert (found.outcome, found.said) == ("refused", ('RayService "<rs>" is invalid',))


# -- when the operator is at rest ------------------------------------------------------------------------------------


def test_a_ready_service_is_done(tale: Tale) -> None:
    assert is_settled(state_at(tale.events))
    assert is_done(state_at(tale.events))


@pytest.mark.parametrize("what", ["pod", "card", "head"])
def test_a_cluster_without_its_pods_is_not_settled(tale: Tale, what: str) -> None:
    if what == "pod":
        tale.cluster("rs-fghij")
    elif what == "card":
        tale.cluster("rs-abcde", least=2)
    else:
        tale.pod("rs-abcde", "head", 0, gone=True)
    assert not is_settled(state_at(tale.events))


def test_a_cluster_that_the_operator_calls_invalid_gets_no_pods_and_is_settled(tale: Tale) -> None:
    tale.cluster("rs-fghij")
    assert is_settled(state_at(tale.events), invalid={"rs-fghij"})


def test_pods_whose_cluster_is_gone_are_not_settled(tale: Tale) -> None:
    tale.cluster("rs-abcde", gone=True)
    assert not is_settled(state_at(tale.events))


def test_a_pod_that_finds_no_node_is_settled_but_an_upgrade_that_waits_is_not_done(tale: Tale) -> None:
    tale.service("rs-abcde", "rs-fghij")
    tale.cluster("rs-fghij")
    tale.pod("rs-fghij", "head", 0)
    tale.pod("rs-fghij", "gpu", 1, node="")
    assert is_settled(state_at(tale.events))
    assert not is_done(state_at(tale.events))


def test_a_status_that_tells_other_endpoints_is_not_done(tale: Tale) -> None:
    tale.service("rs-abcde", said=3)
    assert not is_done(state_at(tale.events))


# -- how two objects are compared ------------------------------------------------------------------------------------


def test_lists_of_named_things_are_compared_by_name() -> None:
    before = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    after = {"env": [{"name": "A", "value": "1"}, {"name": "C", "value": "3"}]}
    assert changes(before, after) == {
        "env[B]": ({"name": "B", "value": "2"}, None),
        "env[C]": (None, {"name": "C", "value": "3"}),
    }


def test_the_order_of_named_things_is_told() -> None:
    before, after = [{"name": "A"}, {"name": "B"}], [{"name": "B"}, {"name": "A"}]
    assert changes(before, after, "env") == {"env (order)": (["A", "B"], ["B", "A"])}
    assert "env (order)" in changes(before, [{"name": "C"}, *before], "env")
    assert "env (order)" not in changes(before, [*before, {"name": "C"}], "env")


def test_a_text_with_json_is_compared_as_such() -> None:
    assert changes({"c": '{"a": 1}'}, {"c": '{"a": 2}'}) == {"c.a": (1, 2)}
    assert changes({"c": '{"a": 1}'}, {"c": '{"a": 1} '}) == {"c": ('{"a": 1}', '{"a": 1} ')}


def test_something_large_is_told_in_short() -> None:
    assert changes({}, {"group": {str(n): n for n in range(9)}}) == {"group": (None, "9 fields")}


def test_an_empty_mapping_is_not_an_absent_one() -> None:
    assert changes({}, {"rayStartParams": {}}) == {"rayStartParams": (None, {})}


def test_what_chance_made_is_left_out() -> None:
    item = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "annotations": {"a": "b"}}, "spec": {"x": 1}}
    assert stored(item) == {"metadata": {"name": "a", "annotations": {"a": "b"}}, "spec": {"x": 1}}


def test_a_name_is_replaced_where_it_stands_for_itself() -> None:
    names = {"e-image": "<rs>", "e-image-x7k2p": "<rs>-1"}
    text = "e-image-x7k2p-head of e-image, not e-images nor the-image"
    assert renamed(text, names) == "<rs>-1-head of <rs>, not e-images nor the-image"
