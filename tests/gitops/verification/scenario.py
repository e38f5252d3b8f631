"""What Argo CD does with a fleet: each step waits for a state, and records what it saw."""

import time
from collections.abc import Callable
from typing import Any

from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.wait import eventually
from gitops.lua import assess
from gitops.verification.components import NAMESPACE
from gitops.verification.repository import GitRepository

__all__ = ["Scenario"]

ROOT = "acme"
Steps = list[dict[str, Any]]


class Scenario:
    """The steps, in their order."""

    def __init__(self, cluster: Cluster, repository: GitRepository, steps: Steps) -> None:
        self.cluster, self.repository, self.steps = cluster, repository, steps
        self._began = time.monotonic()

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

    def service(self, name: str) -> Object:
        return self.cluster.find("RayService", name, "apps") or {}

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

    def record(self, step: str, **seen: Any) -> None:
        entry = {"step": step, "after_seconds": round(time.monotonic() - self._began, 1), **seen}
        self.steps.append(entry)
        print(entry, flush=True)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Sync from nothing, with a service that does not serve: the gateway waits for it."""
        ray = self.cluster.place.ray
        with ray.failing("apps", "chat", dashboard=503):
            self.repository.edit(lambda fleet: None, "Render the fleet")
            self.cluster.kubectl("apply", "-f", str(self.repository.tree / "acme/argocd/root.yaml"))
            self.wait(lambda: self.service("chat").get("status", {}).get("conditions"), "service chat being started")
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
        assert created == sorted(created), created
        assert condition(self.service("chat"), "Ready") == "True"
        self.record("waves are in order, and the fleet is Healthy", created=dict(zip(names, created, strict=True)))

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
        before = self.service("chat")["spec"]["rayClusterDeletionDelaySeconds"]
        self.cluster.patch("rayservice", "chat", "apps", {"spec": {"rayClusterDeletionDelaySeconds": before + 7}})
        delay = lambda: self.service("chat")["spec"]["rayClusterDeletionDelaySeconds"]  # noqa: E731
        self.wait(lambda: delay() == before, "the edit by hand being reverted")
        self.wait(lambda: self.sync("service-chat") == "Synced", "service chat being Synced")
        self.record("self-heal reverts an edit by hand")

    def stay_still(self, minutes: float) -> None:
        """Nothing changes while nothing is committed: no sync, no new generation."""

        def seen() -> Any:
            apps = {
                item["metadata"]["name"]: len(item["status"].get("history", []))
                for item in self.cluster.all("Application", NAMESPACE)
            }
            started = {
                item["metadata"]["name"]: item["status"]["operationState"]["startedAt"]
                for item in self.cluster.all("Application", NAMESPACE)
            }
            services = {name: self.service(name)["metadata"]["generation"] for name in ("chat", "other")}
            clusters = {
                item["metadata"]["name"]: item["metadata"]["generation"]
                for item in self.cluster.all("RayCluster", "apps")
            }
            return apps, started, services, clusters

        self.wait(
            lambda: {self.sync(name) for name in ("", "service-chat", "service-other", "gateway")} == {"Synced"},
            "all Synced",
        )
        time.sleep(20)
        before, end = seen(), time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            time.sleep(10)
            assert seen() == before, (before, seen())
        self.record("nothing is synchronized while nothing changes", minutes=minutes, applications=len(before[0]))

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
        self.record("an Application that points nowhere is Degraded", message=message[:300])
        path.write_text(text)
        self.repository.commit("Restore the values file")
        self.wait(lambda: not self.app("service-other")["status"].get("conditions"), "the error being gone")

    def remove_a_model(self) -> None:
        def remove(fleet: dict[str, Any]) -> None:
            del fleet["models"]["other"], fleet["services"]["other"]
            fleet["tenants"]["apps"]["models"] = ["chat"]

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
