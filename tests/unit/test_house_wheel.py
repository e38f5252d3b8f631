"""The wheel carries charts and data, and works where there is no checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from rayhelm import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
FLEET = ROOT / "values" / "single-gpu" / "fleet.yaml"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT / "python", check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def rayhelm(wheel: Path) -> Path:
    """The command of a fresh environment: the wheel is installed in it, its dependencies are this environment's."""
    home = wheel.parent / "venv"
    venv.create(home, with_pip=True)
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)]
    subprocess.run([home / "bin" / "python", "-I", *install], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    # A .pth file that is reached through a .pth file is not read: the editable install of here stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin" / "rayhelm"


def run(command: Path, *arguments: str, folder: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{ROOT / '.tools' / 'bin'}:{environment['PATH']}"
    ended = subprocess.run(
        [command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_wheel_holds_every_data_file_and_every_chart(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "python" / "src"
    data = {str(path.relative_to(source)) for path in (source / "rayhelm").rglob("*") if path.is_file()}
    charts = {f"rayhelm/data/{path.relative_to(ROOT)}" for path in (ROOT / "charts").rglob("*") if path.is_file()}
    expected = {name for name in data | charts if "__pycache__" not in name}
    assert expected <= names
    assert {name for name in names if "dist-info" not in name} - expected == {"rayhelm/LICENSE"}


def test_the_installed_command_is_the_wheels(rayhelm: Path, tmp_path: Path) -> None:
    assert __version__ in run(rayhelm, "--version", folder=tmp_path)
    where = run(rayhelm.with_name("python"), "-c", "import rayhelm; print(rayhelm.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(rayhelm.parent.parent)


def test_it_plans_and_renders_outside_the_checkout(rayhelm: Path, tmp_path: Path) -> None:
    shutil.copy(FLEET, tmp_path / "fleet.yaml")
    assert "reasons" in run(rayhelm, "plan", "fleet.yaml", "--format", "json", folder=tmp_path)
    run(rayhelm, "render", "fleet.yaml", "-o", "out", folder=tmp_path)
    assert list((tmp_path / "out").rglob("*.yaml"))
