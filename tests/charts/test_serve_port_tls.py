"""TLS of the Serve port: what chart ray-service renders for pods, and chart gateway for its servers and its pods."""

from typing import Any

import pytest
import yaml

from charts.kit import VALUES, over, rendered, serve_config
from charts.kit import ray_service as render_ray_service
from rayhelm.deploy.charts.helm import template
from rayhelm.errors import FleetError

TLS = {"serve": {"tls": {"secretName": "chat-serve-tls"}}}


def containers(overlay: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pod and Ray container of the head and of each worker group."""
    cluster = render_ray_service(overlay)["spec"]["rayClusterConfig"]
    pods = [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    return [(pod, pod["containers"][0]) for pod in pods]


def below(path: str, values: dict[str, Any]) -> dict[str, Any]:
    for part in reversed(path.split(".")):
        values = {part: values}
    return values


def test_serve_reads_certificate_and_key_that_every_pod_mounts() -> None:
    options = serve_config(TLS)["http_options"]
    assert (options["ssl_certfile"], options["ssl_keyfile"]) == ("/etc/serve-tls/tls.crt", "/etc/serve-tls/tls.key")
    for pod, container in containers(TLS):
        (volume,) = [each for each in pod["volumes"] if each["name"] == "serve-tls"]
        assert volume["secret"]["secretName"] == "chat-serve-tls"
        (mount,) = [each for each in container["volumeMounts"] if each["name"] == "serve-tls"]
        assert (mount["mountPath"], mount["readOnly"]) == ("/etc/serve-tls", True)


@pytest.mark.parametrize("path", ["head", "workerGroups.gpu"])
@pytest.mark.parametrize("name", [each["name"] for each in containers(TLS)[1][0]["volumes"]])
def test_volume_of_a_pod_with_tls_is_not_an_extra_volume(path: str, name: str) -> None:
    with pytest.raises(FleetError) as refused:
        rendered(over(TLS, below(path, {"extraVolumes": [{"name": name, "emptyDir": {}}]})))
    assert "the chart has a volume of this name" in refused.value.problems[0].message


@pytest.mark.parametrize("path", ["head", "workerGroups.gpu"])
@pytest.mark.parametrize("mount", [each["mountPath"] for each in containers(TLS)[1][1]["volumeMounts"]])
def test_path_of_a_pod_with_tls_is_not_an_extra_mount(path: str, mount: str) -> None:
    extra = {
        "extraVolumes": [{"name": "extra", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "extra", "mountPath": f"{mount}/extra"}],
    }
    with pytest.raises(FleetError) as refused:
        rendered(over(TLS, below(path, extra)))
    assert "which the pod uses" in refused.value.problems[0].message


def test_workers_with_tls_have_a_readiness_probe_that_uses_it() -> None:
    (_, head), (_, worker) = containers(over(TLS, {"serve": {"port": 8443}}))
    assert "readinessProbe" not in head, "that of KubeRay does not ask the Serve port of the head"
    probe = worker["readinessProbe"]
    assert "https://localhost:8443/-/healthz" in probe["exec"]["command"][2]
    assert (probe["failureThreshold"], probe["periodSeconds"], probe["timeoutSeconds"]) == (1, 5, 2)


def test_head_is_no_endpoint_of_the_service() -> None:
    """KubeRay asks the Serve port of the head without TLS, unless the head is excluded."""
    assert render_ray_service(TLS)["spec"]["excludeHeadPodFromServeSvc"] is True


def test_pods_without_tls_have_the_probe_of_kuberay() -> None:
    assert not [key for key in serve_config()["http_options"] if key.startswith("ssl_")]
    assert all("readinessProbe" not in container for _, container in containers({}))


def test_test_of_a_release_with_tls_uses_it() -> None:
    (pod,) = [each for each in rendered(TLS) if each["kind"] == "Pod"]
    command = pod["spec"]["containers"][0]["command"]
    assert command[-1].startswith("https://chat-serve-svc.models.svc.cluster.local:8000/")
    assert "--no-check-certificate" in command


def gateway(**end: Any) -> list[dict[str, Any]]:
    values = yaml.safe_load((VALUES / "gateway/minimal.yaml").read_text())
    ends = {"llama-8b": {"versions": {"stable": {"endpoints": {"here": {"tls": True, **end}}}}}}
    ca = {"certificateAuthority": {"secretName": "serve-ca", "key": "root.pem"}}
    return template("gateway", "gateway", "models", over(values, {"models": ends, "upstreamTls": ca}))


@pytest.mark.parametrize("server_name", ["", "llm.example.org"])
def test_every_server_of_an_endpoint_verifies_its_certificate(server_name: str) -> None:
    objects = gateway(serverName=server_name)
    (config,) = [each["data"]["haproxy.cfg"] for each in objects if each["kind"] == "ConfigMap"]
    servers = [line.strip() for line in config.splitlines() if line.strip().startswith("server here")]
    assert len(servers) == 2, "the endpoint, and its repetition of failed connections"
    for line in servers:
        assert " ssl verify required ca-file upstream/ca.crt " in line
        name = server_name or line.split()[2].partition(":")[0]
        assert f" verifyhost {name} " in line
        assert f" sni str({name}) " in line


def test_gateway_mounts_the_authority_of_its_endpoints() -> None:
    (deployment,) = [each for each in gateway() if each["kind"] == "Deployment"]
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    sources = [source for volume in volumes for source in volume.get("projected", {}).get("sources", ())]
    items = [{"key": "root.pem", "path": "upstream/ca.crt"}]
    assert {"secret": {"name": "serve-ca", "items": items}} in sources
