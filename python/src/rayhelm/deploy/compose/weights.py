"""Volume of the weights of a service, and what the download Job needs."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from rayhelm.deploy.values.common.network import Peer
from rayhelm.deploy.values.ray_service.cluster import SecretKeyRef
from rayhelm.deploy.values.ray_service.network import BucketEgress, HubEgress
from rayhelm.deploy.values.ray_service.weights import (
    WeightsBucket,
    WeightsClaim,
    WeightsDownload,
    WeightsImage,
    WeightsVolume,
)
from rayhelm.errors import Fix, Problem
from rayhelm.facts.versions import is_at_least
from rayhelm.fleet.pools import Cluster
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.sources import CLAIM, IMAGE, find_source_kind, find_store, is_downloaded, is_hub_id
from rayhelm.planner.plan import ClaimPlan, ModelPlan, Plan

__all__ = ["build_bucket_egress", "build_hub_egress", "build_weights", "find_missing_for_weights"]

IMAGE_VOLUMES = "1.35"
"""Version of Kubernetes from which the feature gate ImageVolume is on; stable from 1.36 (kube_features.go)."""


def build_weights(models: Sequence[ModelPlan], cluster: Cluster, planned: ClaimPlan | None) -> WeightsVolume:
    """Return the volume: with the planned claim, or the existing one that models name."""
    downloaded = [plan for plan in models if is_downloaded(plan.source, plan.revision)]
    adapters = [each for plan in models for each in plan.adapters.values() if is_hub_id(each.source)]
    claims, images = _find_claims(models), _find_images(models)
    if not downloaded and not adapters and not claims:
        return WeightsVolume(enabled=False, images=images)
    token, store = cluster.weights.hub_token, cluster.weights.bucket
    is_store_used = store is not None and any(_is_pinned_bucket(plan) for plan in models)
    return WeightsVolume(
        claim=WeightsClaim(
            size=f"{planned.size_gib}Gi",
            storage_class=cluster.weights.storage_class or "",
            access_mode=planned.access_mode,
        )
        if planned
        else WeightsClaim(existing_claim=claims[0]),
        images=images,
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


def find_missing_for_weights(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each cluster without the store of its models or with a Kubernetes that mounts no images, and
    each service with two claims."""
    yield from _find_old_clusters(plan)
    models = plan.models.values()
    for name in dict.fromkeys(model.cluster for model in models if _is_pinned_bucket(model)):
        yield from _find_wrong_stores(name, plan)
        if not plan.declared.clusters[name].weights.bucket:
            used = next(model for model in models if model.cluster == name and _is_pinned_bucket(model))
            region = {"region": "eu-central-1"} if find_store(used.source) == "s3" else {}
            yield problem_at(
                ("clusters", name),
                f"model `{used.model}` is in {used.source}, and cluster `{name}` has no `weights.bucket` with its"
                " credentials",
                Fix("weights", {"bucket": {**region, "credentialsSecret": "bucket-reader"}}),
            )
    for service in plan.services:
        claims = _find_claims(plan.of_service(service))
        if len(claims) > 1:
            second = next(model for model in plan.of_service(service) if model.source.startswith(f"pvc://{claims[1]}/"))
            yield problem_at(
                (*second.path, "source"),
                f"the pods of service `{service}` mount one claim of weights, and its models are on {len(claims)}: "
                + ", ".join(claims),
                Fix("../service", f"{service}-2", "a service of its own, or copy the weights to one claim"),
            )


def _find_wrong_stores(cluster: str, plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each model that the credentials of the cluster's store cannot read, and for settings of
    the store that its kind does not have."""
    store = plan.declared.clusters[cluster].weights.bucket
    pinned = [model for model in plan.models.values() if model.cluster == cluster and _is_pinned_bucket(model)]
    kept = next((model for model in pinned if find_store(model.source) == "s3"), pinned[0])
    for model in pinned:
        if find_store(model.source) == find_store(kept.source):
            continue
        yield problem_at(
            (*model.path, "source"),
            f"`weights.bucket` of cluster `{cluster}` has the credentials of one store, and `{model.source}` is in"
            f" another than `{kept.source}`: copy the weights to one of them",
            Fix("", _move(model.source, kept.source), "the bucket with the copy"),
        )
    if find_store(kept.source) == "s3" or not store:
        return
    at = ("clusters", cluster, "weights", "bucket")
    is_google = find_store(kept.source) == "gs"
    if not store.credentials_secret:
        how = "an HMAC key, through the S3-compatible API of Google Cloud Storage," if is_google else "a SAS token"
        yield problem_at(
            (*at, "serviceAccount"),
            f"the download Job reads `{kept.source}` with {how} and not with a workload identity",
            Fix("../credentialsSecret", "bucket-reader", replaces=""),
        )
    if store.endpoint and not is_google:
        why = f"the address of the store is in `{kept.source}`, and `endpoint` is for S3-compatible stores"
        yield problem_at((*at, "endpoint"), why, Fix.removal())


def _move(source: str, kept: str) -> str:
    """Return the URL of a copy, in a bucket of the same name in the store of another source."""
    url, other = urlsplit(source), urlsplit(kept)
    # Only Google Cloud Storage has bucket names with an underscore or a dot.
    bucket = url.username or url.netloc.replace("_", "-")
    host = f"{bucket.replace('.', '-')}@{other.hostname}" if other.username else bucket
    return f"{other.scheme}://{host}{url.path}"


def _find_old_clusters(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each cluster whose Kubernetes has no image volumes, or has them off by default."""
    of_images = {plan.cluster: plan for plan in plan.models.values() if IMAGE.fullmatch(plan.source)}
    for name, model in of_images.items():
        version = plan.declared.clusters[name].kubernetes
        if not is_at_least(version, IMAGE_VOLUMES):
            yield problem_at(
                ("clusters", name, "kubernetes"),
                f"the weights of `{model.model}` are in an image, and image volumes are on by default from Kubernetes"
                f" {IMAGE_VOLUMES}; cluster `{name}` has {version}. Upgrade it, or copy the weights to a claim"
                " (`source: pvc://CLAIM/PATH`)",
                Fix("", IMAGE_VOLUMES),
            )


def _find_images(models: Sequence[ModelPlan]) -> dict[str, WeightsImage]:
    """Return the images with weights by application."""
    matches = {plan.application: IMAGE.fullmatch(plan.source) for plan in models}
    return {name: WeightsImage(reference=match["reference"]) for name, match in matches.items() if match}


def _find_claims(models: Sequence[ModelPlan]) -> list[str]:
    """Return the names of existing claims in the sources of models."""
    matches = [CLAIM.fullmatch(plan.source) for plan in models]
    return list(dict.fromkeys(match["claim"] for match in matches if match))


def _is_pinned_bucket(plan: ModelPlan) -> bool:
    return find_source_kind(plan.source) == "bucket" and bool(plan.revision)
