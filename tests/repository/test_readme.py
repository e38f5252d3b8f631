"""The README's figures, size and links hold, and its fleet renders. tests/cluster and tests/pods install it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def shell_blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_readme_commands_render_the_fleet_file_in_an_empty_folder(tmp_path: Path) -> None:
    (block,) = (block for block in shell_blocks() if "rayhelm " in block)
    commands = tmp_path / "bin"
    commands.mkdir()
    rayhelm = commands / "rayhelm"
    rayhelm.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from rayhelm.cli import main; main()" "$@"\n')
    rayhelm.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()
    env = os.environ | {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python/src")}
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("[!.]*.*")}
    releases = {"platform/platform.yaml", "tenant/apps.yaml", "ray-service/qwen3-8b.yaml", "gateway/gateway.yaml"}
    assert written == releases | {"fleet.yaml", "plan.md", "network.md", "map.svg"}


def test_readme_make_commands_and_scripts_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    text = "\n".join(shell_blocks())
    for target in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for script in re.findall(r"^(ci/[a-z-]+)", text, re.MULTILINE):
        assert os.access(ROOT / script, os.X_OK), script


def test_readme_counts_of_lost_requests_are_those_of_the_result() -> None:
    rows = json.loads((ROOT / "benchmarks/failures/result.json").read_text())["rows"]
    lost = {row["name"]: row["failed"] for row in rows if row["failed"] or row["interrupted"]}
    assert f"[{len(rows) - len(lost)} of {len(rows)} events]" in README
    assert lost == {"gateway killed": 3, "single worker killed": 10, "head killed, no Redis": 1}
    assert "gateway pod loses 3, the only worker 10, a head without Redis 1" in README.replace("\n  ", " ")


@pytest.mark.parametrize(("result", "text"), [("result-haproxy-3.4", "[{} to {}]"), ("result", "2.8 {} to {} (")])
def test_readme_ratios_of_the_gateway_are_those_of_the_result(result: str, text: str) -> None:
    ratios = json.loads((ROOT / f"benchmarks/gateway/{result}.json").read_text())["ratios"]["gateway / vllm-router"]
    loads = [load for load in ratios if re.fullmatch(r"\d+ connections?", load)]
    medians = [ratios[load]["requests_per_second"]["median"] for load in loads]
    assert len(medians) == 3
    assert text.format(f"{min(medians):.1f}", f"{max(medians):.1f}") in README.replace(" \N{MULTIPLICATION SIGN}", "")


def test_readme_has_the_largest_difference_of_the_kv_cache() -> None:
    page = (ROOT / "docs/verification.md").read_text().split("<!-- engine -->")[1]
    differences = [abs(float(each)) for each in re.findall(r"\| ([+-][\d.]+) % \|$", page, re.MULTILINE)]
    assert len(differences) == 3
    assert f"[within {max(differences)} %]" in README


def test_readme_has_at_most_110_lines() -> None:
    assert len(README.splitlines()) <= 110


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
