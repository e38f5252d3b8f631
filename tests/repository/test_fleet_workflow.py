"""The reusable workflow and the pre-commit hooks for repositories of users, run on a scratch git repository."""

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
STEPS = {step["name"]: step for step in WORKFLOW["jobs"]["fleet"]["steps"] if "name" in step}
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
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "FLEET": WORKFLOW[True]["workflow_call"]["inputs"]["fleet"]["default"],
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
        }

    def create(self, home: Path) -> None:
        for folder in (self.folder, self.runner, home / "bin"):
            folder.mkdir()
        programs = {
            "helm": f'exec {find_helm()} "$@"',
            # The runner has no Ray, and importing it takes seconds.
            "rayhelm": f'[ "$1" != lint ] || set -- "$@" --no-serve\nexec {ROOT}/.venv/bin/rayhelm "$@"',
            # What the step `comment` calls: it keeps what it was given.
            "gh": 'echo "$@" >"$RUNNER_TEMP/gh"',
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
    assert repository.step("comment", NUMBER="7").returncode == 0
    assert (repository.runner / "gh").read_text().split()[:3] == ["pr", "comment", "7"]


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
