"""Build the settings of the admission policies: exceptions that the fleet file names, each with its reason. Pure."""

from collections.abc import Iterator, Mapping

from rayhelm.deploy.images.reference import ImageReference
from rayhelm.deploy.values.platform.policies import Policies
from rayhelm.deploy.values.platform.policy_catalog import load_policy_catalog
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.fleet.sources import is_hub_id
from rayhelm.planner.plan import Plan

__all__ = ["build_policies"]


def build_policies(cluster: str, plan: Plan, values: Mapping[str, RayServiceValues]) -> Policies:
    """Build the policy settings of a cluster. `values` are the values of the services, by name."""
    here = {name: each for name, each in values.items() if plan.services[name].cluster == cluster}
    return Policies.model_validate(
        {
            "modelRevision": {"unpinned": dict(_list_unpinned(here, plan))},
            "imageSource": {"registries": _collect_registries(here)},
            "gpuOwner": {
                "excludedNamespaces": {
                    plan.services[name].namespace: "its services have no owner in the fleet file"
                    for name in here
                    if not plan.services[name].tenant
                }
            },
        }
    )


def _list_unpinned(values: Mapping[str, RayServiceValues], plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield hub models without a commit, with the reason of the fleet file. The policy refuses models without a
    reason."""
    for service, each in values.items():
        models = {name: plan.declared.models[name] for name in plan.declared.models_of(service)}
        for spec in models.values():
            if is_hub_id(spec.source) and not spec.revision and spec.unpinned_reason:
                yield spec.source, spec.unpinned_reason
        sources = {spec.source for spec in models.values()}
        for name, application in each.serve.custom_applications.items():
            for hub, revision in application.hub_models.items():
                if not revision and hub not in sources:
                    yield hub, f"loaded beside {name}; the catalog names no commit"


def _collect_registries(values: Mapping[str, RayServiceValues]) -> dict[str, str]:
    """Return the repositories of images that the fleet file names, with a reason. Tenants may use no others."""
    allowed = dict(load_policy_catalog()["image-source"].lists["registries"].default)
    for each in values.values():
        named = [(each.image.repository, each.image.digest)]
        named += [(group.image.repository, group.image.digest) for group in each.worker_groups.values()]
        # The chart requires a tag or a digest.
        for text in (each.weights.download.image, each.test.image):
            repository, _, digest = text.partition("@") if "@" in text else (text.rpartition(":")[0], "", "")
            named.append((repository, digest))
        for image in each.weights.images.values():
            name, _, digest = image.reference.partition("@")
            above, _, last = name.rpartition("/")
            named.append((f"{above}/{last.partition(':')[0]}", digest))
        registry = each.global_.image_registry
        for origin, digest in named:
            repository = ImageReference(origin).move(registry).repository if origin else ""
            if repository and not repository.startswith(tuple(each for each in allowed if each.endswith("/"))):
                allowed.setdefault(repository, f"named by a {'digest' if digest else 'tag'} in the fleet file")
    return allowed
