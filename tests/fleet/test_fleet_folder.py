"""Files that a fleet file names are below its folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from check.test_diff_sources import git
from rayhelm.errors import FleetError
from rayhelm.facts.fleet_folder import is_plain_path
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet
from shared.command import Answer, run
from shared.small_fleet import SMALL

SECRET = '{"auths": {"registry.example": {"auth": "s3cret"}}}'
CONFIGS = Path(__file__).parents[1] / "facts/catalog_configs"
FLEET = """\
fleet: one
pools: {gpu: {gpu: H100-SXM-80GB, nodes: 1}}
models: {chat: {source: SOURCE, context: 8192ARCHITECTURE}}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder `fleet` beside the folder of a user with credentials."""
    for name in ("fleet", "home/.docker"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/.docker/config.json").write_text(SECRET)
    (tmp_path / "home/secret.yaml").write_text("s3cret: [\n")
    return tmp_path


def link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def refuse_measurements(folder: Path, name: str) -> str:
    (folder / "fleet.yaml").write_text(f"measurements: {json.dumps(name)}\n{SMALL}")
    with pytest.raises(FleetError) as caught:
        load_fleet(folder / "fleet.yaml")
    return str(caught.value)


def refuse_model(folder: Path, source: str, architecture: str = "") -> str:
    text = FLEET.replace("SOURCE", source).replace(
        "ARCHITECTURE", f", architecture: {architecture}" * bool(architecture)
    )
    (folder / "fleet.yaml").write_text(text)
    loaded = load_fleet(folder / "fleet.yaml")
    with pytest.raises(FleetError) as caught:
        plan_fleet(loaded)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["../home/.docker/config.json", "measured/../../home/secret.yaml", "/etc/hostname", "~/.docker/config.json",
     ".git/config", "sub/.GIT/config", "..\\home"],
)  # fmt: skip
def test_measurements_outside_of_the_fleet_folder_are_refused(repository: Path, name: str) -> None:
    said = refuse_measurements(repository / "fleet", name)
    assert "fleet.yaml:1: measurements: " in said
    assert "is not a path below the folder of the fleet file" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("at", "target", "name"),
    [
        ("link.yaml", "../home/.docker/config.json", "link.yaml"),
        ("linked", "../home/.docker", "linked/config.json"),
        ("link.yaml", ".git/config", "link.yaml"),
    ],
    ids=["file", "folder", "git"],
)
def test_measurements_behind_a_link_to_outside_are_refused(repository: Path, at: str, target: str, name: str) -> None:
    link(repository / "fleet" / at, target)
    said = refuse_measurements(repository / "fleet", name)
    assert f"measurements: `{name}` is a link to a file that is not below the folder" in said


def test_measurements_that_link_to_themselves_are_refused(repository: Path) -> None:
    link(repository / "fleet/link.yaml", "link.yaml")
    assert "fix:" in refuse_measurements(repository / "fleet", "link.yaml")


def test_measurements_behind_a_link_within_the_folder_are_read(tmp_path: Path) -> None:
    """A ConfigMap that is mounted has such links."""
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026/measured.yaml").write_text("pools: {}\n")
    link(tmp_path / "..data", "..2026")
    link(tmp_path / "measured.yaml", "..data/measured.yaml")
    (tmp_path / "fleet.yaml").write_text(f"measurements: measured.yaml\n{SMALL}")
    assert load_fleet(tmp_path / "fleet.yaml").measured


@pytest.mark.parametrize(
    "name", ["../home/secret.yaml", "../home/.docker", "/etc/secret.yaml", "~/x.json", "linked/config.json", "linked"]
)
def test_architecture_outside_of_the_fleet_folder_is_refused(repository: Path, name: str) -> None:
    link(repository / "fleet/linked", "../home/.docker")
    said = refuse_model(repository / "fleet", "acme/odd", name)
    assert "fleet.yaml:3: models.chat.architecture: " in said
    assert "below the folder of the fleet file" in said or "unknown model" in said
    assert "s3cret" not in said


@pytest.mark.parametrize("source", ["HOME/.docker", "../home/.docker", "x/../../home/.docker"])
def test_source_outside_of_the_fleet_folder_is_not_read(repository: Path, source: str) -> None:
    said = refuse_model(repository / "fleet", source.replace("HOME", str(repository / "home")))
    assert "fleet.yaml:3: models.chat.source: " in said
    assert "config.json" not in said.partition("fix:")[0]


def test_quantization_beside_a_config_is_not_read_through_a_link(repository: Path) -> None:
    (repository / "fleet/own").mkdir()
    text = (CONFIGS / "Qwen--Qwen3-14B.json").read_text()
    (repository / "fleet/own/config.json").write_text(text)
    link(repository / "fleet/own/hf_quant_config.json", "../../home/.docker/config.json")
    assert "is a link to a file that is not below" in refuse_model(repository / "fleet", "acme/odd", "./own")


def test_broken_data_file_of_a_model_is_refused_without_its_text(repository: Path) -> None:
    (repository / "fleet/odd.yaml").write_text("a: 1\ns3cret: [\n")
    said = refuse_model(repository / "fleet", "acme/odd", "./odd.yaml")
    assert "s3cret" not in said


def test_unknown_key_of_a_data_file_is_refused_by_its_line(repository: Path) -> None:
    (repository / "fleet/odd.yaml").write_text("id: acme/odd\ns3cret: 1\n")
    said = refuse_model(repository / "fleet", "acme/odd", "./odd.yaml")
    assert "s3cret" not in said


@pytest.fixture
def rayhelm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


@pytest.mark.parametrize("command", ["plan", "lint", "render"])
def test_fleet_file_that_links_to_outside_is_refused(
    repository: Path, command: str, rayhelm: Callable[..., Answer]
) -> None:
    link(repository / "fleet/fleet.yaml", "../home/.docker/config.json")
    answer = rayhelm(command, str(repository / "fleet"))
    assert answer.code == 1
    assert "fleet.yaml: is a link to a file that is not below the folder" in answer.err
    assert "s3cret" not in answer.err + answer.out


def test_measurements_above_the_fleet_file_are_refused_in_a_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rayhelm: Callable[..., Answer]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet/fleet.yaml").write_text(f"measurements: ../other.yaml\n{SMALL}")
    (tmp_path / "other.yaml").write_text("s3cret: 1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    answer = rayhelm("diff", "HEAD..HEAD", "fleet/fleet.yaml")
    assert "measurements: `../other.yaml` is not a path below the folder" in answer.err


@pytest.mark.parametrize("name", ["measured.yaml", "a/b.json", "..data/x", ".hidden/x"])
def test_path_below_the_folder_is_plain(name: str) -> None:
    assert is_plain_path(name)
