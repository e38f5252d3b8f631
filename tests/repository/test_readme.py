"""The README's shell blocks run as written from an empty folder, and its size and links hold."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
HELM = ROOT / ".tools/bin/helm"
CHECKOUT = ("make ", "ci/release")
"""Blocks with these commands are for a checkout; the others run anywhere."""

# `helm upgrade --install` needs a cluster: here it renders the release with the same arguments, by the real helm.
HELM_WITHOUT_CLUSTER = """#!/usr/bin/env bash
set -euo pipefail
[ "$1 $2" = "upgrade --install" ]
shift 2
[ "$1" != kuberay-operator ] || exit 0  # its repository is not at hand
printf '%s\\n' "$*" >>releases
args=()
for word in "$@"; do [ "$word" = --create-namespace ] || args+=("$word"); done
exec "$HELM" template "${args[@]}"
"""
KUBECTL_WITHOUT_CLUSTER = """#!/usr/bin/env bash
set -euo pipefail
if [ "$1 $2" = "label namespace" ]; then  # without a cluster, a label needs the object
    "$KUBECTL" create namespace "$3" --dry-run=client --output=yaml |
        "$KUBECTL" label --local --filename=- --output=name "${@:4}"
    exit
fi
exec "$KUBECTL" "$@" --dry-run=client --output=name
"""


def shell_blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, beside one with the commands that the README calls."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in (("helm", HELM_WITHOUT_CLUSTER), ("kubectl", KUBECTL_WITHOUT_CLUSTER)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    rayhelm = commands / "rayhelm"
    rayhelm.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from rayhelm.cli import main; main()" "$@"\n')
    rayhelm.chmod(0o755)
    empty = tmp_path / "empty"
    empty.mkdir()
    return empty


def run(block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    kubectl = ROOT / ".tools/bin/kubectl"
    env = os.environ | {
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "HELM": str(HELM),
        "KUBECTL": str(kubectl if kubectl.is_file() else shutil.which("kubectl")),
        "PYTHONPATH": str(ROOT / "python/src"),
    }
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_readme_commands_run_as_written_from_an_empty_folder(folder: Path) -> None:
    blocks = [block for block in shell_blocks() if not any(command in block for command in CHECKOUT)]
    assert len(blocks) == 2
    for block in blocks:
        ended = run(block, folder)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    installed = [line.split()[0] for line in (folder / "releases").read_text().splitlines()]
    values = {path.stem for path in folder.glob("*/*.yaml")}
    assert set(installed) == values, "every release that render wrote is installed"
    assert installed == ["platform", "apps", "qwen3-8b", "gateway"]
    assert (folder / "plan.md").is_file()
    assert (folder / "network.md").is_file()


def test_readme_make_commands_and_scripts_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    text = "\n".join(shell_blocks())
    for target in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for script in re.findall(r"^(ci/[a-z-]+)", text, re.MULTILINE):
        assert os.access(ROOT / script, os.X_OK), script


def test_readme_has_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "charts/*/README.md", "policies/**/*.md", "values/*/README.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_exist(page: str) -> None:
    path = ROOT / page
    # PromQL has brackets that look like links.
    prose = re.sub(r"^```.*?^```|`[^`\n]+`", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.exists(), f"{page} links to {target}"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), f"{page} links to {target}"


def anchors(path: Path) -> set[str]:
    """Anchors of headings as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
