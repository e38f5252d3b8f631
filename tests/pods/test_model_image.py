"""Weights in an OCI image: the kubelet mounts it, and servers read the model there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pods.kit import hub
from pods.kit.cluster import Cluster
from pods.kit.service import TINY, Service, serving, values
from rayhelm.errors import RayhelmError
from rayhelm.run.standin.checkpoint import write_checkpoint
from testbed.images.layout import Layout
from testbed.images.tar import Stream
from testbed.node.images import give_by_digest

NAME, FAMILY, FOLDER = "imaged", "LlamaForCausalLM", "weights"
MOUNTED = f"/model-images/{TINY}/{FOLDER}"

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, monkeypatch_module: pytest.MonkeyPatch) -> Path:
    """A folder with `weights`: a tiny model with random weights."""
    folder = tmp_path_factory.mktemp("model")
    write_checkpoint(FAMILY, folder / "tiny")
    monkeypatch_module.setattr(hub, "MODELS", folder / "tiny")
    hub.make(FAMILY, folder / FOLDER)
    for path in (folder / FOLDER).iterdir():
        path.chmod(0o644)  # an image keeps modes, and servers do not run as root
    return folder


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def service(cluster: Cluster, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    layout = Layout(tmp_path_factory.mktemp("layouts") / "tiny-model")
    layout.make("v1", "", layer=Stream(model, [f"./{FOLDER}"]))
    reference = give_by_digest(cluster.node.home, cluster.pid, layout, "v1")
    overlay = {
        "serve": {"applications": {TINY: {"models": {TINY: {"source": MOUNTED, "engine": {"loadFormat": "auto"}}}}}},
        "weights": {"images": {TINY: {"reference": reference, "pullPolicy": "Never"}}},
    }
    with serving(cluster, NAME, values(cluster, overlay)) as found:
        found.session.wait_until_ready(found.release)
        yield found


def test_model_of_the_image_answers(service: Service) -> None:
    try:
        service.session.run_helm("test", NAME, f"--namespace={service.release.namespace}", "--timeout=2m")
    except RayhelmError as error:
        pytest.fail(str(error), pytrace=False)


def test_workers_read_the_files_of_the_image_and_cannot_change_them(service: Service, model: Path) -> None:
    (worker,) = service.pods("worker")
    name = worker["metadata"]["name"]
    found = service.runs(name, f"ls {MOUNTED}; touch {MOUNTED}/mine 2>&1 || true", "ray-worker")
    assert {path.name for path in (model / FOLDER).iterdir()} <= set(found.split())
    assert "Read-only file system" in found
