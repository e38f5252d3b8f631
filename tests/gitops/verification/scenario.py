"""What Argo CD does with a fleet: each step waits for a state, and records what it saw."""

import re
import time
from collections.abc import Callable
from typing import Any

from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.wait import eventually
from gitops.lua import assess
from gitops.verification.components import NAMESPACE, Controller
from gitops.verification.repository import GitRepository
from testbed.tools.crds import crd_files

__all__ = ["STEPS", "Scenario", "Steps"]

ROOT = "acme"
STEPS = (
    "install",
    "smoke_test",
    "fail_a_model",
    "revert_by_hand",
    "hold_back",
    "stay_still",
    "miss_a_crd",
    "point_nowhere",
    "preempt_a_service",
    "remove_a_model",
    "use_an_application_set",
)
"""Methods of Scenario, in their order."""
Steps = list[dict[str, Any]]


def shorten(message: str) -> str:
    """Return the end of an error, without temporary folders."""
    return re.sub(r"\S*/(acme/)", r"\1", message)[-160:]


class Scenario:
    """The steps. `minutes` is the time without a commit."""

    def __init__(self, cluster: Cluster, repository: GitRepository, controller: Controller, minutes: float) -> None:
        self.cluster, self.repository, self.controller, self.minutes = cluster, repository, controller, minutes
        self.steps: Steps = []
        self._step, self._began = "", time.monotonic()

    def run(self) -> None:
        for self._step in STEPS:
            getattr(self, self._step)()

    # -- reading -------------------------------------------------------------------------------------------------------

    def app(self, name: str = "") -> Object:
        return self.cluster.find("Application", f"{ROOT}-{name}".rstrip("-"), NAMESPACE) or {}

    def health(self, name: str = "") -> str:
        return str(self.app(name).get("status", {}).get("health", {}).get("status", ""))

    def sync(self, name: str = "") -> str:
        return str(self.app(name).get("status", {}).get("sync", {}).get("status", ""))

    def message(self, name: str) -> str:
        """Health message of the RayService in an Application."""
        for item in self.app(name).get("status", {}).get("resources", []):
            if item["kind"] == "RayService":
                return str(item.get("health", {}).get("message", ""))
        return ""

    def refusal(self, name: str) -> str:
        """Message of the object that the last sync could not apply."""
        operation = self.app(name).get("status", {}).get("operationState", {})
        resources = operation.get("syncResult", {}).get("resources", [])
        return next((item["message"] for item in resources if item.get("status") == "SyncFailed"), "")

    def names(self) -> list[str]:
        """Names of the Applications, as `app` takes them."""
        found = [item["metadata"]["name"] for item in self.cluster.all("Application", NAMESPACE)]
        return [name.removeprefix(ROOT).removeprefix("-") for name in found]

    def is_delivered(self, name: str) -> bool:
        return self.sync(name) == "Synced" and self.health(name) == "Healthy" and self.phase(name) == "Succeeded"

    def is_current(self, name: str) -> bool:
        """Synced and Healthy; an Application that adopts equal objects needs no sync."""
        return self.sync(name) == "Synced" and self.health(name) == "Healthy"

    def phase(self, name: str) -> str:
        return str(self.app(name).get("status", {}).get("operationState", {}).get("phase", ""))

    def operations(self) -> dict[str, str]:
        """Start of the last sync of each Application."""
        return {name: self.app(name)["status"]["operationState"]["startedAt"] for name in self.names()}

    def generations(self) -> dict[tuple[str, str], int]:
        """Generations of all objects but pods, and but RayClusters that KubeRay is about to remove."""
        active = {self.ray_cluster(name)["metadata"]["name"] for name in ("chat", "other")}
        found = {}
        for item in (*self.cluster.everything("apps"), *self.cluster.everything("gateway")):
            kind, name = item["kind"], item["metadata"]["name"]
            if "generation" in item["metadata"] and kind != "Pod" and (kind != "RayCluster" or name in active):
                found[kind, name] = item["metadata"]["generation"]
        return found

    def service(self, name: str) -> Object:
        return self.cluster.find("RayService", name, "apps") or {}

    def ray_cluster(self, service: str = "chat") -> Object:
        """The RayCluster that serves."""
        name = self.service(service)["status"]["activeServiceStatus"]["rayClusterName"]
        return self.cluster.one("RayCluster", name, "apps")

    def workers(self) -> set[str]:
        """Pods of the workers of chat that run."""
        labels = {"ray.io/cluster": self.ray_cluster()["metadata"]["name"], "ray.io/node-type": "worker"}
        pods = self.cluster.all("Pod", "apps", labels)
        return {item["metadata"]["name"] for item in pods if item.get("status", {}).get("phase") == "Running"}

    def show(self) -> str:
        lines = []
        for item in self.cluster.all("Application", NAMESPACE):
            status = item.get("status", {})
            operation = status.get("operationState", {})
            lines.append(
                f"{item['metadata']['name']}: {status.get('sync', {}).get('status')}"
                f" {status.get('health')} {operation.get('phase')} {operation.get('message')}"
                f" {status.get('conditions')}"
            )
        return "\n".join(lines)

    def wait(self, ask: Callable[[], object], what: str) -> None:
        eventually(ask, what, shows=self.show)

    def record(self, what: str, **seen: Any) -> None:
        after = round(time.monotonic() - self._began, 1)
        entry = {"step": self._step, "what": what, "after_seconds": after, **seen}
        self.steps.append(entry)
        print(entry, flush=True)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Sync from nothing, with a service that does not serve: the gateway waits for it."""
        ray = self.cluster.place.ray
        with ray.failing("apps", "chat", dashboard=503):
            self.repository.edit(lambda fleet: None, "Render the fleet")
            self.cluster.kubectl("apply", "-f", str(self.repository.tree / "acme/argocd/root.yaml"))
            self.wait(lambda: "Initializing" in self.message("service-chat"), "service chat being started")
            self.wait(lambda: self.health("service-other") == "Healthy", "service other being Healthy")
            assert self.health("service-chat") == "Progressing", self.show()
            assert not self.app("gateway"), "the gateway waits for all services"
            self.record(
                "a service that does not serve is Progressing, and the gateway waits",
                message=self.message("service-chat"),
            )
        self.wait(lambda: self.health() == "Healthy" and self.sync() == "Synced", "the fleet being Healthy")
        names = ["kuberay", "platform", "tenant-apps", "service-chat", "gateway"]
        created = [self.app(name)["metadata"]["creationTimestamp"] for name in names]
        assert created == sorted(set(created)), created
        assert condition(self.service("chat"), "Ready") == "True"
        self.record("waves are in order, and the fleet is Healthy", order=names)
        level = "pod-security.kubernetes.io/enforce"
        spaces = {name: self.cluster.one("Namespace", name)["metadata"]["labels"] for name in ("gateway", "apps")}
        assert {name: labels.get(level) for name, labels in spaces.items()} == dict.fromkeys(spaces, "restricted")
        self.record("the namespaces have a Pod Security level", namespaces=sorted(spaces))

    def smoke_test(self) -> None:
        hooks = self.app("service-chat")["status"]["operationState"]["syncResult"]["resources"]
        (hook,) = [each for each in hooks if each.get("hookType") == "PostSync"]
        self.record("the smoke test ran after the sync", name=hook["name"], phase=hook["hookPhase"])
        assert hook["hookPhase"] == "Succeeded"

    def fail_a_model(self) -> None:
        with self.cluster.place.ray.failing("apps", "chat", applications={"chat": "DEPLOY_FAILED"}):
            self.wait(lambda: self.health("service-chat") == "Degraded", "service chat being Degraded")
            assert condition(self.service("chat"), "Ready") == "True"
            self.record("a failed model is Degraded although Ready is True", message=self.message("service-chat"))
        self.wait(lambda: self.health("service-chat") == "Healthy", "service chat being Healthy")

    def revert_by_hand(self) -> None:
        self._edit_by_hand()
        self.record("self-heal reverts an edit by hand")

    def _edit_by_hand(self) -> None:
        before = self.service("chat")["spec"]["rayClusterDeletionDelaySeconds"]
        self.cluster.patch("rayservice", "chat", "apps", {"spec": {"rayClusterDeletionDelaySeconds": before + 7}})
        delay = lambda: self.service("chat")["spec"]["rayClusterDeletionDelaySeconds"]  # noqa: E731
        self.wait(lambda: delay() == before, "the edit by hand being reverted")
        self.wait(lambda: self.sync("service-chat") == "Synced", "service chat being Synced")

    def hold_back(self) -> None:
        """Edits of bounds reach the running RayCluster only with an edit of its pods."""

        def raise_bounds(fleet: dict[str, Any]) -> None:
            fleet["models"]["chat"]["replicas"] = {"min": 1, "max": 3}
            fleet["tenants"]["apps"]["gpus"] = 4

        def change_pods(fleet: dict[str, Any]) -> None:
            fleet["clusters"]["main"]["image"] = {"repository": "registry.example/ray-llm", "tag": "2.60.0-py312"}

        before = self.ray_cluster()["metadata"]
        self.repository.edit(raise_bounds, "Raise the largest number of replicas")
        self.wait(lambda: "Held back" in self.message("service-chat"), "the edit being shown as held back")
        self.wait(lambda: self.sync("service-chat") == "Synced", "service chat being Synced")
        message = self.message("service-chat")
        assert self.health("service-chat") == "Healthy"
        assert self.ray_cluster()["metadata"]["name"] == before["name"]
        assert self.ray_cluster()["spec"]["workerGroupSpecs"][0]["maxReplicas"] == 2
        self.record("an edit that is held back is Synced and Healthy, and its message says so", message=message)
        with self.cluster.place.ray.failing("apps", "chat", applications={"chat": "DEPLOYING"}, only_new=True):
            self.repository.edit(change_pods, "Change the image")
            self.wait(lambda: "replaces" in self.message("service-chat"), "a new RayCluster")
            assert self.health("service-chat") == "Progressing"
            assert condition(self.service("chat"), "Ready") == "True"
            message = self.message("service-chat")
        self.wait(lambda: self.is_delivered("service-chat"), "service chat being Synced and Healthy")
        self.wait(lambda: self.is_delivered("service-other"), "service other being Synced and Healthy")
        assert "Held back" not in self.message("service-chat")
        assert self.ray_cluster()["spec"]["workerGroupSpecs"][0]["maxReplicas"] == 3
        self.record("a new RayCluster is Progressing while the old one serves, and takes the edit", message=message)

    def stay_still(self) -> None:
        """Argo CD starts no sync while nothing is committed, although controllers change what they own."""
        self.wait(
            lambda: all(self.is_delivered(name) for name in self.names()), "all Applications being Synced and Healthy"
        )
        before, looked, end = self.generations(), self.controller.count("argocd_app_reconcile"), 60 * self.minutes
        syncs, operations, began = self.controller.count("argocd_app_sync_total"), self.operations(), time.monotonic()
        acts = [(end / 4, self.scale_up), (end / 2, self.lose_a_worker), (3 * end / 4, self.scale_down)]
        changes = 0
        while (passed := time.monotonic() - began) < end or acts:
            if acts and passed >= acts[0][0]:
                changes += acts.pop(0)[1]()
            time.sleep(5)
            assert self.operations() == operations, self.show()
            assert {self.sync(name) for name in self.names()} == {"Synced"}, self.show()
        cluster = ("RayCluster", self.ray_cluster()["metadata"]["name"])
        after = self.generations()
        # Only what the stand-in for Ray's autoscaler wrote: replicas of the RayCluster, up and down.
        assert after.pop(cluster) == before.pop(cluster) + changes
        assert after == before
        assert self.controller.count("argocd_app_sync_total") == syncs
        self.wait(lambda: self.is_delivered("service-chat"), "service chat being Healthy")
        self.record(
            "no sync starts while nothing is committed and controllers write what they own",
            minutes=self.minutes,
            applications=len(self.names()),
            objects=len(before),
            comparisons=round(self.controller.count("argocd_app_reconcile") - looked),
            syncs=0,
        )

    def scale_up(self) -> int:
        """Add a worker as Ray's autoscaler does, and return the number of changes of the RayCluster."""
        return self._scale(2, [])

    def scale_down(self) -> int:
        return self._scale(1, [max(self.workers())])

    def _scale(self, replicas: int, removed: list[str]) -> int:
        group = "/spec/workerGroupSpecs/0"
        changes = {"replicas": replicas, "scaleStrategy": {"workersToDelete": removed}}
        patch = [{"op": "add", "path": f"{group}/{key}", "value": value} for key, value in changes.items()]
        self.cluster.patch("raycluster", self.ray_cluster()["metadata"]["name"], "apps", patch)
        self.wait(lambda: len(self.workers()) == replicas, f"{replicas} workers")
        return 1

    def lose_a_worker(self) -> int:
        """Delete a pod, which KubeRay replaces."""
        before = self.workers()
        self.cluster.delete("pod", min(before), "apps")
        self.wait(lambda: len(self.workers()) == 2 and self.workers() != before, "another worker")
        return 0

    def miss_a_crd(self) -> None:
        """A sync of an object whose CRD is missing fails, and goes on after the CRD is installed."""

        def scrape(fleet: dict[str, Any]) -> None:
            fleet["clusters"]["main"]["prometheus"] = {"url": "http://prometheus.monitoring:9090"}

        (path,) = [path for path in crd_files("prometheus-operator") if "podmonitors" in path.name]
        self.cluster.kubectl("delete", "-f", str(path))
        self.repository.edit(scrape, "Scrape by PodMonitors")
        self.wait(lambda: "PodMonitor" in self.refusal("service-chat"), "the sync of service chat failing")
        status, _ = assess("argoproj.io/Application", self.app("service-chat"))
        assert status == "Progressing", "it is tried again"
        assert condition(self.service("chat"), "Ready") == "True"
        message = self.refusal("service-chat")
        self.record("a sync without the CRD is tried again while the service serves", status=status, message=message)
        self.cluster.kubectl("apply", "--server-side", "-f", str(path))
        self.wait(
            lambda: all(self.is_delivered(name) for name in self.names()), "all Applications being Synced and Healthy"
        )
        assert self.cluster.kubectl("get", "podmonitors", "--namespace=apps", "--output=name").split()
        self.record("the sync goes on after the CRD is installed")

    def point_nowhere(self) -> None:
        path = self.repository.tree / "acme/ray-service/other.yaml"
        text = path.read_text()
        path.unlink()
        self.repository.commit("Remove a values file")
        self.wait(lambda: self.app("service-other")["status"].get("conditions"), "an error of service other")
        (found, *_) = self.app("service-other")["status"]["conditions"]
        assert found["type"] == "ComparisonError", found
        status, message = assess("argoproj.io/Application", self.app("service-other"))
        assert status == "Degraded"
        assert self.service("other"), "the service stays"
        self.record("an Application that points nowhere is Degraded, and its objects stay", message=shorten(message))
        path.write_text(text)
        self.repository.commit("Restore the values file")
        self.wait(lambda: not self.app("service-other")["status"].get("conditions"), "the error being gone")

    def preempt_a_service(self) -> None:
        """A service without pods, as after a preemption by Kueue, does not stop a later commit."""

        def add(fleet: dict[str, Any]) -> None:
            fleet["models"]["extra"], fleet["services"]["extra"] = fleet["models"]["other"], fleet["services"]["other"]
            fleet["tenants"]["apps"] |= {"models": ["chat", "other", "extra"], "gpus": 5}

        self._suspend_cluster("other", True)
        self.wait(lambda: self.health("service-other") == "Suspended", "service other being Suspended")
        message = self.message("service-other")
        began = self.app()["status"]["operationState"]["startedAt"]
        self.repository.edit(add, "Add a model")
        self.wait(lambda: self.is_delivered("service-extra"), "service extra being delivered")
        self.wait(lambda: self.is_delivered(""), "the sync of the fleet ending")
        assert self.app()["status"]["operationState"]["startedAt"] > began
        assert self.health("service-other") == "Suspended", self.show()
        self.record("a service without pods is Suspended, and the fleet's sync ends", message=message)
        self._suspend_cluster("other", False)
        self.wait(lambda: self.health("service-other") == "Healthy", "service other being Healthy")

    def _suspend_cluster(self, name: str, suspend: bool) -> None:
        self.cluster.patch("rayservice", name, "apps", {"spec": {"rayClusterConfig": {"suspend": suspend}}})

    def remove_a_model(self) -> None:
        def remove(fleet: dict[str, Any]) -> None:
            del fleet["models"]["other"], fleet["services"]["other"]
            fleet["tenants"]["apps"]["models"] = ["chat", "extra"]

        generation = self.service("chat")["metadata"]["generation"]
        self.repository.edit(remove, "Remove a model")
        self.wait(lambda: not self.app("service-other"), "the Application being removed")
        self.wait(lambda: not self.service("other"), "the RayService being removed")
        self.wait(lambda: self.health() == "Healthy" and self.sync() == "Synced", "the fleet being Healthy")
        assert self.service("chat")["metadata"]["generation"] == generation
        assert self.cluster.find("Namespace", "apps")
        left = [item["metadata"]["name"] for item in self.cluster.all("PersistentVolumeClaim", "apps")]
        assert "other-weights" in left
        self.record("a removed model is pruned, and its weights stay", claims=left)

    def use_an_application_set(self) -> None:
        """It adopts the objects, reverts an edit by hand, and removes the objects of a removed model."""

        def remove(fleet: dict[str, Any]) -> None:
            del fleet["models"]["extra"], fleet["services"]["extra"]
            fleet["tenants"]["apps"]["models"] = ["chat"]

        self._forget_applications()
        self.repository.edit(lambda fleet: fleet["gitops"].update(kind="ApplicationSet"), "Use an ApplicationSet")
        self.cluster.kubectl("apply", "-f", str(self.repository.tree / "acme/argocd/root.yaml"))
        releases = ("platform", "tenant-apps", "service-chat", "service-extra", "gateway")
        self.wait(lambda: all(self.is_current(name) for name in releases), "all Applications being Synced and Healthy")
        self.record("an ApplicationSet makes the Applications", applications=list(releases))
        self._edit_by_hand()
        self.record("an Application of an ApplicationSet reverts an edit by hand")
        self.repository.edit(remove, "Remove a model of the ApplicationSet")
        self.wait(lambda: not self.app("service-extra"), "the Application being removed")
        self.wait(lambda: not self.service("extra"), "the RayService being removed")
        self.wait(lambda: self.is_current("service-chat") and self.is_current("gateway"), "the others being Healthy")
        left = [item["metadata"]["name"] for item in self.cluster.all("PersistentVolumeClaim", "apps")]
        assert "extra-weights" in left
        self.record("a model removed from an ApplicationSet is pruned, and its weights stay", claims=left)

    def _forget_applications(self) -> None:
        """Delete the Applications, and keep their objects."""
        for name in sorted(self.names()):
            full = f"{ROOT}-{name}".rstrip("-")
            self.cluster.patch("application", full, NAMESPACE, {"metadata": {"finalizers": None}})
            self.cluster.delete("application", full, NAMESPACE)
        self.wait(lambda: not self.names(), "the Applications being deleted")
