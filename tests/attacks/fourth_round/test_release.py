"""Fourth round: the scripts of a release refuse odd versions, and publish nothing that differs from its checksums."""

import shutil
import subprocess
from pathlib import Path

import pytest

from attacks.kit.fourth_round import Attempt, read_attempts

CI = Path(__file__).parents[3] / "ci"


@pytest.mark.parametrize("attempt", read_attempts("release", "version"), ids=str)
def test_odd_version_is_refused_before_a_file_changes(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    script = shutil.copy(CI / "set-version", tmp_path / "ci")
    package = tmp_path / "python/src/rayhelm/__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text('__version__ = "0.1.0"\n')
    ended = subprocess.run([script, attempt.row["version"]], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "usage: ci/set-version X.Y.Z\n")
    assert package.read_text() == '__version__ = "0.1.0"\n'


@pytest.mark.parametrize("attempt", read_attempts("release", "files"), ids=str)
def test_file_without_its_checksum_is_not_published(attempt: Attempt, tmp_path: Path) -> None:
    folder, programs, said = tmp_path / "dist", tmp_path / "bin", tmp_path / "said"
    folder.mkdir()
    programs.mkdir()
    for name in ("helm", "uv"):
        (programs / name).write_text(f'#!/bin/sh\necho "$0 $*" >>"{said}"\n')
        (programs / name).chmod(0o755)
    for name, text in attempt.row["files"].items():
        (folder / name).write_text(text)
    if "sums" in attempt.row:
        (folder / "SHA256SUMS").write_text(attempt.row["sums"])
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "REGISTRY": "registry.example/acme", "TMPDIR": str(tmp_path)}
    ended = subprocess.run([CI / "publish", folder], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode, ended.stdout
    assert not said.exists(), "no program was started"
