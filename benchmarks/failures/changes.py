"""Events: edits of a service's values."""

import time

from failures.installation import Installation

__all__ = ["change_cluster", "change_config"]


def change_config(installation: Installation) -> None:
    """Change an engine argument: Serve replaces the replicas in place."""
    (application,) = installation.service.values.model_dump()["serve"]["applications"]
    (model,) = installation.service.values.model_dump()["serve"]["applications"][application]["models"]
    change = {"serve": {"applications": {application: {"models": {model: {"engine": {"maxModelLen": 512}}}}}}}
    installation.session.install(installation.change_values(installation.service, change))
    installation.wait_until_ready()


def change_cluster(installation: Installation) -> None:
    """Change the environment of the pods: KubeRay creates another Ray cluster, which takes over."""
    before = installation.session.list_ray_clusters(installation.service)
    installation.session.install(installation.change_values(installation.service, {"head": {"env": {"CHANGED": "1"}}}))
    installation.session.wait_for_switch(installation.service, before)
    installation.switched = time.time()
    installation.session.wait_until_removed(installation.service, before)
    installation.wait_until_ready()
