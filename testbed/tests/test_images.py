"""Images: the recipe for GPUs, which cannot be built here, and what goes into the one for tests."""

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from rayhelm.errors import RayhelmError
from rayhelm.facts.versions import versions
from testbed.images import archive
from testbed.images.__main__ import LOCKS, RECIPE, main
from testbed.images.base import PYTHON, packages_of
from testbed.images.python import AS_PIP_IS_SET, SITE_PACKAGES, patterns_of
from testbed.images.tar import Stream
from testbed.tools.checkout import HERE

DOCKERFILE, OTHERS, DOCTOR = (
    (HERE.root / "ci" / "images" / name / "Dockerfile").read_text() for name in ("gpu", "vllm", "doctor")
)
LEFT_OUT = (RECIPE / "left-out").read_text().splitlines()


# -- for GPUs ----------------------------------------------------------------------------------------------------------


def test_base_for_gpus_is_the_image_that_the_charts_name() -> None:
    image = versions().images["ray"]
    assert f"ARG BASE={image.repository}:{image.tag}\n" in DOCKERFILE


def test_base_for_other_gpus_has_the_version_of_vllm_and_gets_that_of_ray() -> None:
    assert f"ARG BASE=vllm/vllm-openai-rocm:v{versions().vllm}\n" in OTHERS
    assert f"BASE is vllm/vllm-openai-xpu:v{versions().vllm}." in OTHERS
    assert f"startswith('{versions().vllm}')" in OTHERS
    assert f"ray[serve]=={versions().ray}" in read_requirements("ray")


def test_ray_brings_to_other_gpus_what_the_tests_have_beside_vllm_and_torch() -> None:
    tested = {line for line in read_requirements("serve") if not line.startswith(("-c", "vllm", "torch"))}
    assert tested <= set(read_requirements("ray"))


def read_requirements(name: str) -> list[str]:
    lines = (HERE.root / "requirements" / f"{name}.in").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("dockerfile", [DOCKERFILE, OTHERS], ids=["gpu", "vllm"])
def test_digests_of_the_builder_and_the_base_image_are_required(dockerfile: str) -> None:
    assert "\nARG BASE_DIGEST\n" in dockerfile
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert bases == ["${BUILDER}@${BUILDER_DIGEST}", "${BASE}@${BASE_DIGEST}"]
    assert not re.search("sha256:[0-9a-f]", dockerfile)


@pytest.mark.parametrize("dockerfile", [DOCKERFILE, OTHERS], ids=["gpu", "vllm"])
def test_gpu_image_has_a_numeric_user_other_than_root(dockerfile: str) -> None:
    assert re.findall(r"^USER (\S+)", dockerfile, re.MULTILINE)[-1] == "1000"


def test_nothing_of_the_base_is_replaced() -> None:
    assert "pip install --no-cache-dir --no-deps /wheels/*.whl" in DOCKERFILE


@pytest.mark.parametrize("dockerfile", [DOCKERFILE, OTHERS, DOCTOR], ids=["gpu", "vllm", "doctor"])
def test_what_is_copied_is_there_and_is_sent_to_the_builder(dockerfile: str) -> None:
    sent = (HERE.root / ".dockerignore").read_text().splitlines()
    mounted = re.findall(r"type=bind,source=([^,]+),", dockerfile)
    for source in [*re.findall(r"^COPY ([^-]\S*) ", dockerfile, re.MULTILINE), *mounted]:
        assert (HERE.root / source).exists()
        assert f"!{source}" in sent


def list_recipes_of_pages() -> list[tuple[str, str]]:
    pages = sorted((HERE.root / "docs").rglob("*.md"))
    found = {page.stem: re.findall(r"^```dockerfile\n(.*?)^```$", page.read_text(), re.M | re.S) for page in pages}
    return [(name, text) for name, texts in found.items() for text in texts]


def test_pages_have_recipes_of_images_for_own_applications() -> None:
    assert {name for name, _ in list_recipes_of_pages()} == {"build-an-image", "serve-your-own-application"}


@pytest.mark.parametrize(("page", "recipe"), list_recipes_of_pages(), ids=lambda text: text.partition("\n")[0])
def test_recipe_of_a_page_passes_hadolint(page: str, recipe: str) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    found = subprocess.run([hadolint, "-"], input=recipe, capture_output=True, text=True, check=False)
    assert found.returncode == 0, f"{page}: {found.stdout}"


# -- for the doctor ----------------------------------------------------------------------------------------------------


def test_images_that_the_doctor_is_made_of_need_a_digest() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCTOR, re.MULTILINE)
    assert set(bases) == {"${HELM}@${HELM_DIGEST}", "${BASE}@${BASE_DIGEST}"}
    assert not re.search("sha256:[0-9a-f]", DOCTOR)


def test_doctor_image_has_the_user_of_its_pod_and_the_locked_packages() -> None:
    values = yaml.safe_load((HERE.root / "charts/platform/values.yaml").read_text())
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCTOR, re.MULTILINE)
    assert set(values["doctor"]["podSecurityContext"].values()) == {int(user)}
    assert "--require-hashes --target /packages -r requirements/doctor.txt" in DOCTOR
    locked = (HERE.root / "requirements/doctor.txt").read_text()
    for extra in ("kubernetes==", "prometheus-client=="):
        (wanted,) = re.findall(
            f'"({extra}[^"]*)"', (HERE.root / "python/pyproject.toml").read_text().partition("dev =")[0]
        )
        assert f"\n{wanted} " in locked


def test_what_pip_is_reported_about_its_index_holds_for_the_packages_of_images() -> None:
    if not (HERE.store / "uv" / "bin" / "python").exists():
        return  # the host's own uv has settings of its own
    read_version = subprocess.check_output(
        [*AS_PIP_IS_SET, "bash", "-c", 'echo "$UV_DEFAULT_INDEX" "$1"', "-", "a word"],
        cwd=HERE.root,
        env={**os.environ, "PIP_INDEX_URL": "https://mirror.example/simple"},
        text=True,
    )
    assert read_version == "https://mirror.example/simple a word\n"


# -- for tests ---------------------------------------------------------------------------------------------------------


def test_base_image_has_the_commands_of_kuberays_probes() -> None:
    assert {"bash", "wget", "python3"} <= set(packages_of(RECIPE / "base.packages"))


def test_unknown_image_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu"]) == 2
    assert "unknown image gpu; known: base, haproxy, redis, packages, cpu" in capsys.readouterr().err


def test_every_file_that_is_left_out_has_a_reason() -> None:
    lines = [line for line in LEFT_OUT if line and not line.startswith("#")]
    assert lines
    assert all(re.fullmatch(r"\S+ \| \S.*", line) for line in lines), lines
    assert len(patterns_of(RECIPE / "left-out")) == len(lines)


def test_packages_are_those_that_rayhelm_up_serves_with() -> None:
    assert [lock.name for lock in LOCKS] == ["core.txt", "serve.txt"]
    assert all(lock.exists() for lock in LOCKS)
    assert f"opt/venv/lib/python{PYTHON}/site-packages" == SITE_PACKAGES


def test_layer_has_root_as_owner_exclusions_and_file_times(tmp_path: Path) -> None:
    for name in ("kept/a.py", "kept/deep/b.so.9", "left/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    with Stream(tmp_path, ["."], left_out=["left", "kept/deep/*.so.9"]) as stream:
        data = stream.output.read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        entries = {entry.name: entry for entry in tar.getmembers()}
    assert [name for name, entry in entries.items() if entry.isfile()] == ["./kept/a.py"]
    assert {(entry.uid, entry.gid) for entry in entries.values()} == {(0, 0)}
    assert entries["./kept/a.py"].mtime == int((tmp_path / "kept/a.py").stat().st_mtime)


def test_two_links_to_one_file_are_two_files_in_a_layer(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    with Stream(tmp_path, ["./a", "./b"]) as stream, tarfile.open(fileobj=io.BytesIO(stream.output.read())) as tar:
        assert [entry.isfile() for entry in tar.getmembers()] == [True, True]


def test_layer_of_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RayhelmError, match=r"tar: .*nowhere"), Stream(tmp_path, ["./nowhere"]) as stream:
        stream.output.read()


# -- for other clusters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["ray:cpu"], 2, "ci/images/archive IMAGE FILE"),
        (["ray:none", "file"], 3, "there is no image ray:none"),
        (["nothing", "file"], 3, "there is no image nothing"),
    ],
)
def test_archive_of_a_missing_image_is_refused(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert archive.main(words) == code
    assert said in capsys.readouterr().err
