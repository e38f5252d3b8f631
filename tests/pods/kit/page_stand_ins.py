"""`stand-ins FILE`, for commands of pages: the GPUs and the hub that this computer lacks are replaced in values alone.

With a fleet file, CPU stand-ins replace the models in the values files that `rayhelm render` wrote beside it. With
values of chart quickstart, it prints them with stand-ins. The variable STAND_INS describes the node.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import dump_yaml, select_changed
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.facts.closed import Closed
from rayhelm.run.standin.cluster import StandInCluster, adapt_gateway, adapt_platform, adapt_service, adapt_tenant

__all__ = ["describe"]

FAMILY = "LlamaForCausalLM"
"""Of the model in the example of chart quickstart."""


def describe(*, kuberay: str, image: str, haproxy: str) -> str:
    """Return the value of STAND_INS."""
    return json.dumps({"kuberay": kuberay, "image": image, "haproxy": haproxy})


def main(file: Path) -> None:
    given = json.loads(os.environ["STAND_INS"])
    repository, _, tag = given["image"].rpartition(":")
    cluster = StandInCluster(
        kuberay=given["kuberay"],
        image=RayImage.model_validate({"repository": repository, "tag": tag, "includesRayhelm": True}),
        haproxy=given["haproxy"],
    )
    values = yaml.safe_load(file.read_text())
    if "fleet" not in values:
        print(yaml.safe_dump(_adapt_quickstart(values, cluster)))
        return
    rendered = render_fleet(file)
    for release in rendered.releases:
        (file.parent / release.file).write_text(dump_yaml(_adapt(release, rendered, cluster), "With CPU stand-ins."))


def _adapt(release: Release, rendered: Rendered, cluster: StandInCluster) -> Closed:
    match release.values:
        case RayServiceValues() as values:
            families = {plan.served_as: plan.architecture for plan in rendered.plan.of_service(release.name)}
            return adapt_service(values, families, cluster).values
        case GatewayValues() as values:
            return adapt_gateway(values, cluster)
        case TenantValues() as values:
            return adapt_tenant(values, cluster)
        case PlatformValues() as values:
            return adapt_platform(values, cluster)
        case values:
            return values


def _adapt_quickstart(values: Mapping[str, object], cluster: StandInCluster) -> dict[str, object]:
    service = RayServiceValues.model_validate(values["ray-service"])
    models = [model for application in service.serve.applications.values() for model in application.models]
    gateway = GatewayValues.model_validate(values["gateway"])
    return {
        "ray-service": select_changed(adapt_service(service, dict.fromkeys(models, FAMILY), cluster).values),
        "gateway": select_changed(adapt_gateway(gateway, cluster)),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
