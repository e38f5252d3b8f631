"""Events: edits of a service's values."""

import time

from failures.scene import Scene

__all__ = ["change_cluster", "change_config"]


def change_config(scene: Scene) -> None:
    """Change an engine argument: Serve replaces the replicas in place."""
    (application,) = scene.service.values.model_dump()["serve"]["applications"]
    (model,) = scene.service.values.model_dump()["serve"]["applications"][application]["models"]
    change = {"serve": {"applications": {application: {"models": {model: {"engine": {"maxModelLen": 512}}}}}}}
    scene.session.install(scene.change_values(scene.service, change))
    scene.wait_until_ready()


def change_cluster(scene: Scene) -> None:
    """Change the environment of the pods: KubeRay creates another Ray cluster, which takes over."""
    before = scene.session.list_ray_clusters(scene.service)
    scene.session.install(scene.change_values(scene.service, {"head": {"env": {"CHANGED": "1"}}}))
    scene.session.wait_for_switch(scene.service, before)
    scene.switched = time.time()
    scene.session.wait_until_removed(scene.service, before)
    scene.wait_until_ready()
