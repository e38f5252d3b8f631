"""Sources of models other than the hub: buckets and existing claims, from the fleet file to the values."""

import pytest

from rayhelm.deploy.compose.policies import build_policies
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.compose.tenant import build_tenant_values
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.sources import find_source_kind
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PINNED = f"source: 's3://acme/qwen/v1', revision: {SHA}"
AZURE = "azure://models@acme.blob.core.windows.net/qwen/v1"
MINIO = "{endpoint: 'http://minio.store:80', credentialsSecret: reader, namespace: store, port: 9000}"


def fleet(model: str, bucket: str = "{region: eu-1, credentialsSecret: reader}", more: str = "") -> str:
    weights = f", weights: {{bucket: {bucket}}}" if bucket else ""
    return (
        f"fleet: sources\nclusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}{weights}}}}}\n"
        "pools: {gpu: {gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 2}}\n"
        f"models:\n  chat: {{{model}, architecture: Qwen/Qwen3-8B, context: 4096}}\n{more}"
    )


def values(text: str) -> dict[str, RayServiceValues]:
    loaded = load(text)
    with loaded.document.joined():
        return build_ray_service_values(plan_fleet(loaded))


def refusal(text: str) -> Problem:
    with pytest.raises(FleetError) as refused:
        values(text)
    (problem,) = refused.value.problems
    check_fixes(text, [problem], values)
    return problem


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("Qwen/Qwen3-8B", "hub"),
        ("s3://acme-models/qwen3-8b/v1", "bucket"),
        ("s3://acme-models", "bucket"),
        ("s3://acme/../other", "server"),
        ("gs://acme_models/qwen/v1", "bucket"),
        ("gs://acme/../other", "server"),
        ("abfss://models@acme.dfs.core.windows.net/qwen", "bucket"),
        ("azure://models@acme.z01.blob.storage.azure.net/qwen/v1", "bucket"),
        ("azure://models@acme.blob.core.windows.net", "bucket"),
        ("azure://models@acme.blob.core.windows.net/../other", "server"),
        ("azure://models@acme.example/qwen", "server"),
        ("azure://models/qwen", "server"),
        ("pvc://shared/qwen/v1", "claim"),
        ("pvc://shared/../etc", "unknown"),
        ("pvc://shared/qwen/..", "unknown"),
        ("pvc://shared", "unknown"),
        ("oci://registry.example/qwen:v1", "unknown"),
        (f"oci://registry.example:5000/models/qwen:v1@sha256:{SHA}", "image"),
        (f"oci://registry.example/qwen@sha256:{SHA}/models/v1", "image"),
        (f"oci://registry.example/qwen@sha256:{SHA}/../etc", "unknown"),
        (f"oci://registry.example/Qwen@sha256:{SHA}", "unknown"),
        (f"oci://registry.example@sha256:{SHA}", "unknown"),
        ("https://hub.example/qwen", "unknown"),
        ("/mnt/qwen", "path"),
    ],
)
def test_kind_of_a_source_is_its_form(source: str, kind: str) -> None:
    assert find_source_kind(source) == kind


def test_pinned_bucket_is_downloaded_by_the_job() -> None:
    found = values(fleet(PINNED))["chat"]
    model = found.serve.applications["chat"].models["chat"]
    assert (model.source, model.revision) == ("s3://acme/qwen/v1", SHA)
    assert found.weights.enabled
    assert found.weights.download.enabled
    assert found.weights.download.bucket.credentials_secret == "reader"
    assert (found.network_policy.bucket.cidrs, found.network_policy.bucket.ports) == (["0.0.0.0/0"], [443])
    assert found.network_policy.hub.cidrs == []


def test_store_in_the_cluster_is_the_only_egress_and_the_tenant_may_allow_it() -> None:
    text = fleet(PINNED, MINIO, "services: {chat: {tenant: apps}}\ntenants: {apps: {gpus: 2}}\n")
    egress = values(text)["chat"].network_policy.bucket
    assert (egress.peer.namespace, egress.cidrs, egress.ports) == ("store", [], [9000])
    loaded = load(text)
    plan = plan_fleet(loaded)
    (tenant,) = build_tenant_values(plan, build_ray_service_values(plan), {}).values()
    assert "store:9000" in tenant.network_policy.allowed.namespaces


def test_google_bucket_is_downloaded_with_the_keys_of_the_secret() -> None:
    found = values(fleet(f"source: 'gs://acme/qwen/v1', revision: {SHA}", "{credentialsSecret: reader}"))["chat"]
    bucket = found.weights.download.bucket
    assert (bucket.endpoint, bucket.credentials_secret) == ("", "reader")
    assert (found.network_policy.bucket.cidrs, found.network_policy.bucket.ports) == (["0.0.0.0/0"], [443])


def test_google_bucket_is_refused_with_a_workload_identity() -> None:
    refused = refusal(fleet(f"source: 'gs://acme/qwen/v1', revision: {SHA}", "{serviceAccount: reader}"))
    assert "with an HMAC key" in refused.message


def test_two_kinds_of_stores_in_one_cluster_are_refused() -> None:
    second = f"  other: {{source: 'gs://backup/x', revision: {SHA}, architecture: Qwen/Qwen3-8B, context: 4096}}\n"
    assert "has the credentials of one store" in refusal(fleet(PINNED, more=second)).message


def test_azure_container_is_downloaded_with_the_token_of_the_secret() -> None:
    found = values(fleet(f"source: '{AZURE}', revision: {SHA}", "{credentialsSecret: reader}"))["chat"]
    assert found.weights.download.bucket.credentials_secret == "reader"
    assert (found.network_policy.bucket.cidrs, found.network_policy.bucket.ports) == (["0.0.0.0/0"], [443])
    assert found.network_policy.hub.cidrs == []


@pytest.mark.parametrize(
    ("bucket", "message"),
    [
        ("{serviceAccount: reader}", "with a SAS token and not with a workload identity"),
        ("{credentialsSecret: a, endpoint: 'https://s3.example'}", "`endpoint` is for S3-compatible stores"),
    ],
)
def test_azure_store_that_the_job_cannot_read_is_refused(bucket: str, message: str) -> None:
    assert message in refusal(fleet(f"source: '{AZURE}', revision: {SHA}", bucket)).message


@pytest.mark.parametrize(
    ("first", "second", "fix"),
    [
        (AZURE, "azure://voice@other.blob.core.windows.net/tts", "azure://voice@acme.blob.core.windows.net/tts"),
        (AZURE, "gs://acme_voice/tts", "azure://acme-voice@acme.blob.core.windows.net/tts"),
        ("s3://acme/qwen", "azure://voice@other.blob.core.windows.net/tts", "s3://voice/tts"),
        ("gs://acme/qwen", "abfss://voice@other.dfs.core.windows.net/tts", "gs://voice/tts"),
    ],
)
def test_second_store_is_refused_and_the_fix_names_a_copy_in_the_first(first: str, second: str, fix: str) -> None:
    more = f"  other: {{source: '{second}', revision: {SHA}, architecture: Qwen/Qwen3-8B, context: 4096}}\n"
    text = fleet(f"source: '{first}', revision: {SHA}", "{credentialsSecret: reader}", more)
    found = refusal(text).fix
    assert isinstance(found, Fix)
    assert found.value == fix


def test_fix_of_two_stores_names_a_bucket_that_s3_can_have() -> None:
    second = f"  other: {{source: 'gs://back_up/x_1', revision: {SHA}, architecture: Qwen/Qwen3-8B, context: 4096}}\n"
    fix = refusal(fleet(PINNED, more=second)).fix
    assert isinstance(fix, Fix)
    assert fix.value == "s3://back-up/x_1"
    assert find_source_kind(fix.value) == "bucket"


@pytest.mark.parametrize(("scheme", "keys"), [("s3", {"region", "credentialsSecret"}), ("gs", {"credentialsSecret"})])
def test_fix_of_a_missing_store_has_a_region_for_s3_only(scheme: str, keys: set[str]) -> None:
    fix = refusal(fleet(f"source: '{scheme}://acme/qwen/v1', revision: {SHA}", "")).fix
    assert isinstance(fix, Fix)
    assert fix.value["bucket"].keys() == keys


def test_workload_identity_is_of_the_job_alone() -> None:
    found = values(fleet(PINNED, "{region: eu-1, serviceAccount: weights-reader}"))["chat"]
    assert found.weights.download.service_account == "weights-reader"
    assert found.weights.download.bucket.credentials_secret == ""


def test_hub_model_gets_nothing_of_the_bucket() -> None:
    found = values(fleet(f"source: Qwen/Qwen3-8B, revision: {COMMIT}", MINIO))["chat"]
    assert found.weights.download.bucket.credentials_secret == ""
    assert (found.network_policy.bucket.peer.namespace, found.network_policy.bucket.cidrs) == (None, [])
    assert found.network_policy.hub.cidrs == ["0.0.0.0/0"]


def test_model_on_an_existing_claim_is_read_from_there_without_a_download() -> None:
    found = values(fleet("source: 'pvc://shared/qwen/v1'", ""))["chat"]
    assert found.serve.applications["chat"].models["chat"].source == "/models/qwen/v1"
    assert found.weights.claim.existing_claim == "shared"
    assert not found.weights.download.enabled


IMAGE = f"source: 'oci://registry.example/models/qwen:v1@sha256:{SHA}/weights'"


def test_model_in_an_image_is_mounted_without_a_download() -> None:
    found = values(fleet(IMAGE, ""))["chat"]
    model = found.serve.applications["chat"].models["chat"]
    assert (model.source, model.revision) == ("/model-images/chat/weights", "")
    assert found.weights.images["chat"].reference == f"registry.example/models/qwen:v1@sha256:{SHA}"
    assert not found.weights.enabled


def test_image_with_weights_is_an_image_that_the_policy_allows() -> None:
    loaded = load(fleet(IMAGE, ""))
    plan = plan_fleet(loaded)
    settings = build_policies("main", plan, build_ray_service_values(plan))
    assert "registry.example/models/qwen" in settings.model_dump(by_alias=True)["imageSource"]["registries"]


@pytest.mark.parametrize("version", ["1.31", "1.33", "1.34"])
def test_image_is_refused_when_kubernetes_has_no_image_volumes(version: str) -> None:
    old = fleet(IMAGE, "").replace("main: {", f"main: {{kubernetes: '{version}', ")
    assert "image volumes are on by default from Kubernetes 1.35" in refusal(old).message


def test_bucket_without_store_is_refused() -> None:
    assert "cluster `main` has no `weights.bucket`" in refusal(fleet(PINNED, "")).message


def test_two_claims_in_one_service_are_refused() -> None:
    second = "  other: {source: 'pvc://b/x', architecture: Qwen/Qwen3-8B, context: 4096, service: chat}\n"
    assert "mount one claim" in refusal(fleet("source: 'pvc://a/x', service: chat", "", second)).message


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("source: 'oci://registry.example/qwen:v1'", "64 hexadecimal digits, pins the weights"),
        ("source: 'oci://registry.example/qwen@sha256:0123'", "64 hexadecimal digits, pins the weights"),
        (f"source: 'oci://registry.example/qwen@sha256:{SHA}/../etc'", "64 hexadecimal digits, pins the weights"),
        (f"source: 'oci://registry.example/qwen@sha256:{SHA}', revision: {SHA}", "The digest pins an image"),
        ("source: 'ftp://store.example/qwen'", "is none of"),
        ("source: 'pvc://shared/../etc'", "is none of"),
        (f"source: 's3://acme/qwen', revision: {COMMIT}", "64 hexadecimal digits"),
        (f"source: Qwen/Qwen3-8B, revision: {SHA}", "40 digits of a commit"),
        (f"source: 'gs://acme/qwen', revision: {COMMIT}", "64 hexadecimal digits"),
        (f"source: 'gs://Acme/qwen', revision: {SHA}", "nothing checks the revision"),
        (f"source: '{AZURE}', revision: {COMMIT}", "64 hexadecimal digits"),
        (f"source: 'azure://models/qwen', revision: {SHA}", "nothing checks the revision"),
        ("source: 'az://models/qwen'", "a container of Azure (`azure://`, `abfss://`)"),
        (f"source: 's3://acme/../other', revision: {SHA}", "nothing checks the revision"),
        (f"source: /mnt/qwen, revision: {COMMIT}", "nothing checks the revision"),
    ],
)
def test_source_or_revision_without_meaning_is_refused(model: str, message: str) -> None:
    assert message in refusal(fleet(model)).message


@pytest.mark.parametrize(
    ("bucket", "message"),
    [
        ("{region: eu-1}", "either `credentialsSecret`"),
        ("{credentialsSecret: a, serviceAccount: b}", "either `credentialsSecret`"),
        ("{endpoint: s3.example, credentialsSecret: a}", "is not the URL"),
        ("{endpoint: 'https://key:password@s3.example', credentialsSecret: a}", "is not the URL"),
        ("{endpoint: 'https://s3.example/bucket', credentialsSecret: a}", "is not the URL"),
        ("{endpoint: 'https://s3.example:99999', credentialsSecret: a}", "is not the URL"),
        ("{credentialsSecret: a, namespace: store}", "needs its `endpoint`"),
        ("{endpoint: 'http://a', credentialsSecret: a, namespace: b, cidrs: [10.0.0.0/8]}", "keep one"),
        ("{accessKey: AKIA, credentialsSecret: a}", "unknown key"),
    ],
)
def test_store_that_cannot_work_is_refused(bucket: str, message: str) -> None:
    assert message in refusal(fleet(PINNED, bucket)).message


def test_last_part_of_a_hub_id_is_refused_with_the_whole_id() -> None:
    text = fleet("source: Qwen3-8B").replace(", architecture: Qwen/Qwen3-8B", "")
    problem = refusal(text)
    assert problem.message.startswith("`Qwen3-8B` would be a path in the container")
    assert problem.fix_text == "source: Qwen/Qwen3-8B"


def test_relative_path_with_a_stated_architecture_is_accepted() -> None:
    assert values(fleet("source: Qwen3-8B"))
