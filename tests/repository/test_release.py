"""A release carries one version: the wheel, every chart and the tag."""

import subprocess
from pathlib import Path

import pytest
import yaml

from rayhelm import __version__

ROOT = Path(__file__).resolve().parents[2]
CHARTS = sorted(path.parent.name for path in ROOT.glob("charts/*/Chart.yaml"))


def release(tag: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "ci/release", tag, folder], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("chart", CHARTS)
def test_charts_have_the_version_of_the_wheel(chart: str) -> None:
    assert yaml.safe_load((ROOT / "charts" / chart / "Chart.yaml").read_text())["version"] == __version__


def test_changelog_has_an_entry_for_the_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_release_writes_the_wheel_and_every_chart_with_checksums(tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    ended = release(f"v{__version__}", folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    expected = {f"{chart}-{__version__}.tgz" for chart in CHARTS} | {f"rayhelm-{__version__}-py3-none-any.whl"}
    assert {path.name for path in folder.iterdir()} == expected | {"SHA256SUMS"}
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert checked.returncode == 0


def test_release_refuses_a_tag_of_another_version(tmp_path: Path) -> None:
    ended = release("v9.9.9", tmp_path / "dist")
    assert (ended.returncode, "the tag says 9.9.9" in ended.stderr) == (1, True)
    assert not (tmp_path / "dist").exists()


def test_release_refuses_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    ended = release(f"v{__version__}", tmp_path)
    assert (ended.returncode, "is not empty" in ended.stderr) == (2, True)
    assert (tmp_path / "mine").read_text() == "keep"
