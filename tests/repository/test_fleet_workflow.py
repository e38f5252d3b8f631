"""The reusable workflow and the pre-commit hooks for repositories of users, run on a scratch git repository."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.deploy.charts.helm import find_helm

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/fleet.yaml").read_text())
JOBS = WORKFLOW["jobs"]
STEPS = {step["name"]: step for job in JOBS.values() for step in job["steps"] if "name" in step}
MARK = "<!-- rayhelm: . -->"
FLEET = (ROOT / "values/single-gpu/fleet.yaml").read_text()


class Repository:
    """A user's repository whose branch `main` has a rendered fleet."""

    def __init__(self, home: Path) -> None:
        self.folder, self.runner = home / "fleet", home / "runner"
        self.environment = {
            **os.environ,
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.runner),
            "GITHUB_STEP_SUMMARY": str(self.runner / "summary"),
            "GITHUB_OUTPUT": str(self.runner / "output"),
            "GH_REPO": "acme/fleet",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "FLEET": WORKFLOW[True]["workflow_call"]["inputs"]["fleet"]["default"],
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
        }

    def create(self, home: Path) -> None:
        for folder in (self.folder, self.runner, home / "bin"):
            folder.mkdir()
        programs = {
            "helm": f'exec {find_helm()} "$@"',
            "rayhelm": f'exec {ROOT}/.venv/bin/rayhelm "$@"',
            # What the step `comment` calls: it lists the comments of a file, and keeps what it was given to write.
            "gh": 'if [ "$2" = --paginate ]; then exec jq -r "$5" "$RUNNER_TEMP/comments.json"; fi\n'
            'echo "$@" >"$RUNNER_TEMP/gh"',
            "pip": 'echo "$@" >"$RUNNER_TEMP/pip"',
        }
        for name, script in programs.items():
            (home / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
            (home / "bin" / name).chmod(0o755)
        self.run("git init --quiet --initial-branch main && git config user.name a && git config user.email a@b.c")
        self.write(FLEET)
        self.run("rayhelm render . && git add --all && git commit --quiet --message first")
        self.run("git update-ref refs/remotes/origin/main HEAD")

    def write(self, fleet: str) -> None:
        (self.folder / "fleet.yaml").write_text(fleet)

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run as a step of a workflow runs: `bash -e`, with pipefail."""
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        environment = {**self.environment, **variables}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def step(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(STEPS[name]["run"], **variables)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a repository that each test copies."""
    home = tmp_path_factory.mktemp("user")
    Repository(home).create(home)
    return home


@pytest.fixture
def repository(rendered: Path, tmp_path: Path) -> Repository:
    shutil.copytree(rendered, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Repository(tmp_path)


def test_workflow_scripts_hold_no_expressions() -> None:
    """A value of a pull request that is pasted into a script can run commands."""
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []


def test_workflow_passes_on_a_rendered_fleet(repository: Repository) -> None:
    assert repository.step("lint").returncode == 0
    ended = repository.step("rendered files are current", OUTPUT="", RENDER_OPTIONS="")
    assert ended.returncode == 0, ended.stderr


def test_workflow_fails_on_a_wrong_fleet(repository: Repository) -> None:
    repository.write(FLEET.replace("context: 8192", "context: 8192000"))
    ended = repository.step("lint")
    assert (ended.returncode, "fleet.yaml:" in ended.stderr + ended.stdout) == (1, True)


@pytest.mark.parametrize("options", ["", "--manifests"])
def test_workflow_fails_on_stale_files(options: str, repository: Repository) -> None:
    repository.write(FLEET.replace("context: 8192", "context: 4096"))
    ended = repository.step("rendered files are current", OUTPUT="", RENDER_OPTIONS=options)
    assert (ended.returncode, "ray-service/llama-8b.yaml" in ended.stderr + ended.stdout) == (1, True)


def test_workflow_comments_what_the_change_does(repository: Repository) -> None:
    repository.write(FLEET.replace("context: 8192", "context: 4096"))
    repository.run("rayhelm render . && git commit --quiet --all --message smaller")
    ended = repository.step("what the change does", BASE="origin/main", FAIL_ON="")
    assert ended.returncode == 0, ended.stderr
    text = (repository.runner / "diff.md").read_text()
    assert "llama-8b" in text
    assert (repository.runner / "summary").read_text() == text
    first, *lines, last = (repository.runner / "output").read_text().splitlines()
    assert (first, "\n".join(lines)) == (f"comment<<{last}", text.rstrip("\n"))


def write_comment(repository: Repository, *existing: tuple[str, str]) -> str:
    """Return what the step `comment` has gh write, on a pull request with comments of these authors and texts."""
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    comments = [{"id": number, "user": {"login": who}, "body": text} for number, (who, text) in enumerate(existing, 40)]
    (repository.runner / "comments.json").write_text(json.dumps(comments))
    ended = repository.step("comment", NUMBER="7", MARK=MARK, COMMENT="what it does")
    assert ended.returncode == 0, ended.stderr
    assert (repository.runner / "comment.md").read_text() == f"{MARK}\nwhat it does\n"
    return (repository.runner / "gh").read_text()


def test_workflow_leaves_comments_of_others(repository: Repository) -> None:
    others = (("github-actions[bot]", "of another workflow"), ("eve", f"{MARK}\nx"))
    assert write_comment(repository, *others).startswith("pr comment 7 --body-file")


def test_workflow_replaces_its_own_comment(repository: Repository) -> None:
    written = write_comment(
        repository,
        ("github-actions[bot]", "<!-- rayhelm: other -->\nx"),
        ("github-actions[bot]", f"{MARK}\nbefore"),
        ("github-actions[bot]", "of another workflow"),
    )
    assert "--method PATCH repos/acme/fleet/issues/comments/41 " in written


def test_only_the_job_that_comments_may_write() -> None:
    """It runs no package, and nothing of the pull request."""
    assert JOBS["fleet"]["permissions"] == {"contents": "read"}
    assert JOBS["comment"]["permissions"] == {"pull-requests": "write"}
    assert [step["name"] for step in JOBS["comment"]["steps"]] == ["comment"]
    assert "rayhelm " not in STEPS["comment"]["run"].replace("<!-- rayhelm", "")


def install(repository: Repository, *, sha256: str = "") -> subprocess.CompletedProcess[str]:
    """Run the step `install` with a release whose files are in a folder."""
    release = repository.runner / "release"
    release.mkdir()
    lock = release / "rayhelm-0.2.0.lock"
    lock.write_text("rayhelm==0.2.0 --hash=sha256:0\ntyper==1 \\\n    --hash=sha256:1\n")
    (release / "rayhelm-0.2.0-py3-none-any.whl").write_text("wheel")
    sha256 = sha256 or hashlib.sha256(lock.read_bytes()).hexdigest()
    return repository.step("install", LOCK=lock.as_uri(), SHA256=sha256)


def test_workflow_installs_a_release_with_the_hashes_of_its_lock(repository: Repository) -> None:
    ended = install(repository)
    assert ended.returncode == 0, ended.stderr
    assert "--require-hashes" in (repository.runner / "pip").read_text().split()
    assert (repository.runner / "rayhelm-0.2.0-py3-none-any.whl").read_text() == "wheel"


def test_workflow_refuses_a_changed_lock(repository: Repository) -> None:
    assert install(repository, sha256="0" * 64).returncode != 0
    assert not (repository.runner / "pip").exists()


def test_workflow_fails_on_chosen_results_and_still_comments(repository: Repository) -> None:
    repository.write(FLEET.replace("gpu: L4-24GB", "gpu: L40S-48GB"))
    repository.run("rayhelm render . && git commit --quiet --all --message larger")
    ended = repository.step("what the change does", BASE="origin/main", FAIL_ON="held-back new-cluster")
    assert ended.returncode == 1, ended.stderr
    assert "llama-8b" in (repository.runner / "diff.md").read_text()


def test_workflow_diff_fails_on_a_base_that_does_not_exist(repository: Repository) -> None:
    assert repository.step("what the change does", BASE="origin/nowhere", FAIL_ON="").returncode != 0


def hook(repository: Repository, name: str) -> subprocess.CompletedProcess[str]:
    hooks: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (found,) = (hook for hook in hooks if hook["id"] == name)
    config = {"repos": [{"repo": "local", "hooks": [found]}]}
    path = repository.runner / "pre-commit.yaml"
    path.write_text(yaml.safe_dump(config))
    return repository.run(f"{ROOT}/.venv/bin/pre-commit run --all-files --verbose --config {path} {name}")


def test_hooks_pass_on_a_rendered_fleet(repository: Repository) -> None:
    for name in ("rayhelm-lint", "rayhelm-render"):
        ended = hook(repository, name)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_lint_hook_refuses_a_wrong_fleet(repository: Repository) -> None:
    repository.write(FLEET.replace("task: chat", "task: chatt"))
    ended = hook(repository, "rayhelm-lint")
    assert (ended.returncode, "chatt" in ended.stdout) == (1, True)


def test_render_hook_writes_stale_files_and_fails_once(repository: Repository) -> None:
    repository.write(FLEET.replace("context: 8192", "context: 4096"))
    repository.run("git add --all")
    assert "files were modified by this hook" in hook(repository, "rayhelm-render").stdout
    repository.run("git add --all")
    assert hook(repository, "rayhelm-render").returncode == 0


def test_manifest_of_hooks_is_one_that_pre_commit_accepts() -> None:
    command = [ROOT / ".venv/bin/pre-commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml"]
    subprocess.run(command, check=True, capture_output=True)
