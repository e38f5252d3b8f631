"""Edits of a service's values."""

import time

from failures.scene import Scene

__all__ = ["cluster_changed", "config_changed"]


def config_changed(scene: Scene) -> None:
    """An engine argument: Serve replaces the replicas in place."""
    (application,) = scene.service.values.model_dump()["serve"]["applications"]
    (model,) = scene.service.values.model_dump()["serve"]["applications"][application]["models"]
    change = {"serve": {"applications": {application: {"models": {model: {"engine": {"maxModelLen": 512}}}}}}}
    scene.session.install(scene.changed(scene.service, change))
    scene.whole()


def cluster_changed(scene: Scene) -> None:
    """The environment of the pods: another Ray cluster is built, and takes over."""
    before = scene.session.list_ray_clusters(scene.service)
    scene.session.install(scene.changed(scene.service, {"head": {"env": {"CHANGED": "1"}}}))
    scene.session.wait_for_switch(scene.service, before)
    scene.switched = time.time()
    scene.session.wait_until_removed(scene.service, before)
    scene.whole()
