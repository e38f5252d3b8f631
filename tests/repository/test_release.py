"""A release carries one version: the wheel, every chart and the tag."""

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from rayhelm import __version__
from rayhelm.facts.versions import versions

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github/workflows/release.yaml"
JOBS = yaml.safe_load(WORKFLOW.read_text())["jobs"]
CHARTS = sorted(path.parent.name for path in ROOT.glob("charts/*/Chart.yaml"))


def release(tag: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "ci/release", tag, folder], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("chart", CHARTS)
def test_charts_have_the_version_of_the_wheel(chart: str) -> None:
    assert yaml.safe_load((ROOT / "charts" / chart / "Chart.yaml").read_text())["version"] == __version__


def test_changelog_begins_with_what_breaks() -> None:
    text = (ROOT / "CHANGELOG.md").read_text().partition("## [Unreleased]")[2].partition("\n## [")[0]
    sections = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert sections == [name for name in ("Breaking", "Added", "Changed", "Fixed") if name in sections]
    assert "Breaking" not in text.partition("### Added")[2], "write it below `### Breaking`"


def test_changelog_has_an_entry_for_the_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_release_writes_the_wheel_and_every_chart_with_checksums(tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    ended = release(f"v{__version__}", folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    expected = {f"{chart}-{__version__}.tgz" for chart in CHARTS} | {f"rayhelm-{__version__}-py3-none-any.whl"}
    lock, sbom = f"rayhelm-{__version__}.lock", f"rayhelm-{__version__}.cdx.json"
    assert {path.name for path in folder.iterdir()} == expected | {"SHA256SUMS", lock, sbom}
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert checked.returncode == 0
    assert_lock_is_complete(folder / lock, next(folder.glob("*.whl")))
    components = json.loads((folder / sbom).read_text())["components"]
    locked = re.findall(r"(?m)^([\w.-]+)(?:\[.*?\])?==(\S+)", (folder / lock).read_text())
    assert sorted((each["name"], each["version"]) for each in components) == sorted(locked)


def assert_lock_is_complete(lock: Path, wheel: Path) -> None:
    """Check that the lock has the hash of the wheel, and each package that the wheel needs."""
    first, *others = (line for line in lock.read_text().splitlines() if not line.startswith(" "))
    assert first == f"rayhelm=={__version__} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    locked = {re.split(r"[=\[]", line)[0] for line in others}
    with zipfile.ZipFile(wheel) as opened:
        metadata = opened.read(f"rayhelm-{__version__}.dist-info/METADATA").decode()
    needed = set(re.findall(r"(?m)^Requires-Dist: ([\w.-]+)(?!.*extra ==)", metadata))
    assert needed
    assert {name.lower() for name in needed} <= {name.lower() for name in locked}


def test_set_version_changes_the_wheel_and_every_chart(tmp_path: Path) -> None:
    for name in (
        "ci/set-version",
        "python/src/rayhelm/__init__.py",
        *(f"charts/{chart}/Chart.yaml" for chart in CHARTS),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run([tmp_path / "ci/set-version", "9.10.11"], check=True, capture_output=True)
    assert '__version__ = "9.10.11"\n' in (tmp_path / "python/src/rayhelm/__init__.py").read_text()
    for chart in CHARTS:
        before, after = (
            yaml.safe_load((each / "charts" / chart / "Chart.yaml").read_text()) for each in (ROOT, tmp_path)
        )
        assert after["version"] == "9.10.11"
        assert after["appVersion"] == ("9.10.11" if before["appVersion"] == __version__ else before["appVersion"])
        assert {part["version"] for part in after.get("dependencies", [])} <= {"9.10.11"}


def test_workflow_runs_the_scripts_that_are_rehearsed() -> None:
    found = re.findall(r"(?m)^\s+(?:- run: )?ci/([\w-]+) ", WORKFLOW.read_text())
    assert set(found) == {"release", "sign-charts", "attest", "publish", "sign-pushed"}


def test_release_refuses_a_tag_of_another_version(tmp_path: Path) -> None:
    ended = release("v9.9.9", tmp_path / "dist")
    assert (ended.returncode, "the tag says 9.9.9" in ended.stderr) == (1, True)
    assert not (tmp_path / "dist").exists()


def test_release_refuses_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    ended = release(f"v{__version__}", tmp_path)
    assert (ended.returncode, "is not empty" in ended.stderr) == (2, True)
    assert (tmp_path / "mine").read_text() == "keep"


def test_job_that_runs_packages_has_no_secret_and_no_identity() -> None:
    assert [name for name, job in JOBS.items() if "make setup" in str(job)] == ["build"]
    assert "secrets." not in str(JOBS["build"])
    assert JOBS["build"]["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("name", ["attest", "publish"])
def test_job_with_secrets_takes_the_files_of_the_job_before_by_their_checksum(name: str) -> None:
    job = JOBS[name]
    assert job["environment"] == "release", "its reviewers approve the job"
    (take,) = (step for step in job["steps"] if step.get("name") == "take the files of the build")
    assert take["env"]["SUM"] == f"${{{{ needs.{job['needs']}.outputs.sum }}}}"
    assert 'sha256sum --check --strict <<<"$SUM  SHA256SUMS"' in take["run"]
    before = [step["with"]["name"] for step in JOBS[job["needs"]]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert [f"--name {each} " in take["run"] for each in before] == [True]


def test_workflow_pushes_with_the_helm_of_the_tests() -> None:
    assert f"helm.sh/helm/v4/cmd/helm@v{versions().binaries['helm'].version}\n" in WORKFLOW.read_text()


@pytest.mark.parametrize(("branch", "code"), [("main", 0), ("other", 1)])
def test_workflow_releases_commits_of_main_only(branch: str, code: int, tmp_path: Path) -> None:
    (step,) = (step for step in JOBS["build"]["steps"] if step.get("name") == "the tag is on main")
    commit = "git -c user.name=a -c user.email=a@b.c commit --quiet --allow-empty --message"
    prepare = f"""git init --quiet --initial-branch main && {commit} first
        git update-ref refs/remotes/origin/main HEAD
        git checkout --quiet -B {branch} && if [ {branch} != main ]; then {commit} second; fi
        export GITHUB_SHA=$(git rev-parse HEAD) TAG=v1.0.0 GIT_CONFIG_GLOBAL=/dev/null"""
    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", f"{prepare}\n{step['run']}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "not on main" in ended.stderr) == (code, bool(code)), ended.stderr
