"""Volume of the weights of a service, and what the download Job needs."""

from collections.abc import Iterator, Sequence
from math import ceil

from rayhelm.errors import Fix, Problem
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.pools import Cluster
from rayhelm.spec.sources import CLAIM, find_source_kind, is_downloaded, is_hub_id
from rayhelm.values.build.weights_claim import AccessMode
from rayhelm.values.common.network import Peer
from rayhelm.values.ray_service.cluster import SecretKeyRef
from rayhelm.values.ray_service.network import BucketEgress, HubEgress
from rayhelm.values.ray_service.weights import WeightsBucket, WeightsClaim, WeightsDownload, WeightsVolume

__all__ = ["build_bucket_egress", "build_hub_egress", "build_weights", "find_missing_for_weights"]


def build_weights(models: Sequence[ModelPlan], cluster: Cluster, size: float | None, mode: AccessMode) -> WeightsVolume:
    """Return the volume: with the pinned size, or room for the current and the next revision of downloaded models, or
    the existing claim that models name."""
    downloaded = [plan for plan in models if is_downloaded(plan.source, plan.revision)]
    adapters = [each for plan in models for each in plan.adapters.values() if is_hub_id(each.source)]
    claims = _find_claims(models)
    if not downloaded and not adapters and not claims:
        return WeightsVolume(enabled=False)
    held = sum(
        sum(stage.weights_gib for stage in plan.stages) * plan.tensor_parallel_size * plan.data_parallel_size
        for plan in downloaded
    )
    held += sum(plan.adapter_gib * len(plan.adapters) for plan in models)
    token, store = cluster.weights.hub_token, cluster.weights.bucket
    is_store_used = store is not None and any(_is_pinned_bucket(plan) for plan in models)
    return WeightsVolume(
        claim=WeightsClaim(existing_claim=claims[0])
        if claims
        else WeightsClaim(
            size=f"{ceil(size / 2**30) if size else ceil((2 * held + 10) / 10) * 10}Gi",
            storage_class=cluster.weights.storage_class or "",
            access_mode=mode,
        ),
        download=WeightsDownload(
            enabled=bool(downloaded or adapters),
            token_secret=SecretKeyRef(name=token.name, key=token.key) if token else SecretKeyRef(),
            bucket=WeightsBucket(
                endpoint=store.endpoint or "",
                region=store.region or "",
                credentials_secret=store.credentials_secret or "",
            )
            if store and is_store_used
            else WeightsBucket(),
            service_account=(store.service_account or "") if store and is_store_used else "",
        ),
    )


def build_bucket_egress(models: Sequence[ModelPlan], cluster: Cluster) -> BucketEgress:
    """Return the egress of the download Job to the store."""
    store = cluster.weights.bucket
    if not store or not any(_is_pinned_bucket(plan) for plan in models):
        return BucketEgress()
    peer = Peer(namespace=store.namespace, pod_labels=store.pod_labels) if store.namespace else Peer()
    cidrs = [] if store.namespace else list(store.cidrs) or HubEgress().cidrs
    return BucketEgress(peer=peer, cidrs=cidrs, ports=[store.egress_port])


def build_hub_egress(models: Sequence[ModelPlan]) -> HubEgress:
    """Return the egress of the download Job to the hub: none if it downloads only from a bucket."""
    needs_hub = any(is_hub_id(plan.source) or plan.adapters for plan in models)
    return HubEgress() if needs_hub or not any(_is_pinned_bucket(plan) for plan in models) else HubEgress(cidrs=[])


def find_missing_for_weights(plan: Plan, loaded: LoadedFleet) -> Iterator[Problem]:
    """Yield a problem for each cluster without the store of its models, and each service with two claims."""
    models = plan.models.values()
    for name in dict.fromkeys(model.cluster for model in models if _is_pinned_bucket(model)):
        if not loaded.fleet.clusters[name].weights.bucket:
            used = next(model for model in models if model.cluster == name and _is_pinned_bucket(model))
            yield loaded.document.problem(
                ("clusters", name),
                f"model `{used.model}` is in {used.source}, and cluster `{name}` has no `weights.bucket` with its"
                " credentials",
                Fix("weights", {"bucket": {"region": "eu-central-1", "credentialsSecret": "bucket-reader"}}),
            )
    for service in plan.services:
        claims = _find_claims(plan.of_service(service))
        if len(claims) > 1:
            second = next(model for model in plan.of_service(service) if model.source.startswith(f"pvc://{claims[1]}/"))
            yield loaded.document.problem(
                ("models", second.model, "source"),
                f"the pods of service `{service}` mount one claim of weights, and its models are on {len(claims)}: "
                + ", ".join(claims),
                Fix("../service", f"{service}-2", "a service of its own, or copy the weights to one claim"),
            )


def _find_claims(models: Sequence[ModelPlan]) -> list[str]:
    """Return the names of existing claims in the sources of models."""
    matches = [CLAIM.fullmatch(plan.source) for plan in models]
    return list(dict.fromkeys(match["claim"] for match in matches if match))


def _is_pinned_bucket(plan: ModelPlan) -> bool:
    return find_source_kind(plan.source) == "bucket" and bool(plan.revision)
