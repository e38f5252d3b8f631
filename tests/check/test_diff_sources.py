"""Where `rayhelm diff` reads its two states: fleet files, rendered folders, git, a live cluster; and bad input."""

import json
import shutil
import subprocess
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from check.test_diff import FLEET, of, side
from rayhelm.check.diff.compare import compare_sides
from rayhelm.check.diff.read_live import read_live
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.live.cluster.reader import ClusterReader
from rayhelm.live.cluster.recorded import RecordedTransport
from shared.command import Answer
from shared.command import run as run_command

Rayhelm = Callable[..., Answer]
EDITED = FLEET.replace("context: 8192", "context: 4096")
POOLED = FLEET.replace("nodes: 4, ", "nodes: 4, nodeSelector: {zone: a}, ")


@pytest.fixture
def rayhelm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rayhelm:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run_command(capsys, monkeypatch, *arguments)


def write(path: str, text: str) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return Path(path)


def git(*words: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


# -- fleet files and the command -------------------------------------------------------------------------------------


def test_command_shows_the_effect_in_each_format(rayhelm: Rayhelm) -> None:
    write("old.yaml", FLEET)
    write("new.yaml", EDITED)
    text = rayhelm("diff", "old.yaml", "new.yaml")
    assert text.code == 0
    assert "Serve update in place" in text.out
    assert rayhelm("diff", "old.yaml", "new.yaml", "--format", "markdown").out.startswith("### old.yaml -> new.yaml")
    report = json.loads(rayhelm("diff", "old.yaml", "new.yaml", "--format", "json").out)
    assert [each["effect"] for each in report["releases"] if each["chart"] == "ray-service"] == ["serve config"]


@pytest.mark.parametrize(("danger", "code"), [("requests-at-risk", 1), ("any", 1), ("new-cluster", 0)])
def test_command_ends_with_1_for_a_danger_that_fail_on_names(rayhelm: Rayhelm, danger: str, code: int) -> None:
    write("old.yaml", FLEET)
    write("new.yaml", EDITED)
    assert rayhelm("diff", "old.yaml", "new.yaml", "--fail-on", danger).code == code


def test_command_writes_nothing(rayhelm: Rayhelm) -> None:
    write("old.yaml", FLEET)
    write("new.yaml", POOLED)
    rayhelm("diff", "old.yaml", "new.yaml")
    assert sorted(path.name for path in Path().iterdir()) == ["new.yaml", "old.yaml"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["old.yaml"], 2, "NEW is missing"),
        (["old.yaml", "old.yaml", "--live"], 2, "give one state"),
        (["old.yaml", "old.yaml", "--cluster", "main"], 2, "--cluster is for a comparison with a cluster"),
        (["HEAD..HEAD"], 2, "the fleet file is missing"),
        (["nowhere.yaml", "old.yaml"], 1, "nowhere.yaml: no such file"),
        (["no/where", "old.yaml"], 1, "no git repository"),
        (["old.yaml", "old.yaml", "--fail-on", "fire"], 2, "fire"),
        (["empty", "old.yaml"], 1, "has no fleet file and no rendered values"),
        (["two", "old.yaml"], 1, "has 2 fleet files (a.yaml, b.yaml)"),
    ],
)
def test_command_explains_wrong_arguments(rayhelm: Rayhelm, arguments: list[str], code: int, words: str) -> None:
    write("old.yaml", FLEET)
    Path("empty").mkdir()
    write("two/a.yaml", FLEET)
    write("two/b.yaml", FLEET.replace("fleet: small", "fleet: other"))
    answer = rayhelm("diff", *arguments)
    assert answer.code == code
    assert words in answer.err
    assert "Traceback" not in answer.err


# -- rendered folders ------------------------------------------------------------------------------------------------


def test_rendered_folders_compare_like_their_fleet_files(rayhelm: Rayhelm) -> None:
    for name, text in (("old", FLEET), ("new", POOLED)):
        write(f"{name}/fleet.yaml", text)
        assert rayhelm("render", name).code == 0
    trees = json.loads(rayhelm("diff", "old", "new", "--format", "json").out)
    files = json.loads(rayhelm("diff", "old/fleet.yaml", "new/fleet.yaml", "--format", "json").out)
    assert [each["effect"] for each in trees["releases"]] == [each["effect"] for each in files["releases"]]
    assert trees["gpus"] == files["gpus"]
    assert trees["dangers"] == files["dangers"] == ["new-cluster"]


def test_rendered_folder_without_fleet_file_says_what_is_unknown(rayhelm: Rayhelm) -> None:
    for name, text in (("old", FLEET), ("new", POOLED)):
        write(f"{name}.yaml", text)
        assert rayhelm("render", f"{name}.yaml", "-o", name).code == 0
    report = json.loads(rayhelm("diff", "old", "new", "--format", "json").out)
    assert {each["effect"] for each in report["releases"] if each["chart"] == "ray-service"} == {"new cluster"}
    assert report["gpus"][0]["capacity"] is None
    assert any("has no fleet file" in note for note in report["notes"])


def test_values_edited_by_hand_are_compared_as_they_are(rayhelm: Rayhelm) -> None:
    for name in ("old", "new"):
        write(f"{name}/fleet.yaml", FLEET)
        assert rayhelm("render", name).code == 0
    file = Path("new/ray-service/chat.yaml")
    file.write_text(file.read_text() + "nameOverride: another\n")
    answer = rayhelm("diff", "old", "new")
    assert "1 of" in answer.out


def test_values_that_the_chart_refuses_are_reported_and_end_with_1(rayhelm: Rayhelm) -> None:
    for name in ("old", "new"):
        write(f"{name}/fleet.yaml", FLEET)
        assert rayhelm("render", name).code == 0
    file = Path("new/ray-service/chat.yaml")
    file.write_text(file.read_text() + "upgrade: {strategy: Rolling}\n")
    answer = rayhelm("diff", "old", "new")
    assert answer.code == 1
    assert "refused" in answer.out


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda: Path("old/ray-service/chat.yaml").unlink(), "old/ray-service/chat.yaml: is missing"),
        (lambda: shutil.rmtree("old/ray-service"), "half rendered"),
        (lambda: Path("old/ray-service/chat.yaml").write_text(HALF), "old/ray-service/chat.yaml:3: is not YAML"),
        (lambda: write("old/fleet.yaml", FLEET.replace("fleet: small", "fleet: other")), "two fleets in one folder"),
        (lambda: write("old/.rayhelm-files.json", "<<<<<<< HEAD"), "it is not JSON"),
    ],
)
def test_half_rendered_folder_is_refused_with_a_fix(rayhelm: Rayhelm, spoil: Callable[[], object], words: str) -> None:
    write("old/fleet.yaml", FLEET)
    assert rayhelm("render", "old").code == 0
    write("new.yaml", FLEET)
    spoil()
    answer = rayhelm("diff", "old", "new.yaml")
    assert answer.code == 1
    assert words in answer.err
    assert "fix:" in answer.err


HALF = """\
# Values of chart ray-service: release `chat` (chat), namespace `models`.
<<<<<<< HEAD: {
"""


# -- git -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(rayhelm: Rayhelm) -> Rayhelm:
    git("init", "--quiet")
    write("gpu/fleet.yaml", FLEET)
    git("add", ".")
    git("commit", "--quiet", "--message=first")
    write("gpu/fleet.yaml", EDITED)
    git("commit", "--quiet", "--all", "--message=second")
    return rayhelm


def test_git_range_compares_two_revisions_without_a_checkout(repository: Rayhelm) -> None:
    write("gpu/fleet.yaml", "not: a fleet")
    answer = repository("diff", "HEAD~1..HEAD", "gpu/fleet.yaml")
    assert answer.code == 0
    assert "Serve update in place" in answer.out
    assert Path("gpu/fleet.yaml").read_text() == "not: a fleet"


def test_three_dots_compare_with_the_common_ancestor(repository: Rayhelm) -> None:
    git("checkout", "--quiet", "-b", "edits/pool", "HEAD~1")
    write("gpu/fleet.yaml", POOLED)
    git("commit", "--quiet", "--all", "--message=branch")
    report = json.loads(repository("diff", "@{-1}...edits/pool", "gpu", "--format", "json").out)
    assert {each["effect"] for each in report["releases"] if each["chart"] == "ray-service"} == {"new cluster"}
    (chat,) = [each for each in report["releases"] if each["release"] == "chat"]
    assert [path for path in chat["changed"] if "nodeSelector" not in path] == []


def test_branch_with_a_slash_is_a_revision(repository: Rayhelm) -> None:
    git("branch", "edits/pool", "HEAD~1")
    assert "Serve update in place" in repository("diff", "edits/pool", "gpu").out


def test_one_revision_compares_with_the_file_as_it_is(repository: Rayhelm) -> None:
    write("gpu/fleet.yaml", POOLED)
    assert "new RayCluster" in repository("diff", "HEAD~1", "gpu").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere..HEAD", "gpu/fleet.yaml"], "git does not know the revision `nowhere`"),
        (["no/where", "gpu/fleet.yaml"], "the revision `no/where`, and there is no such file or folder"),
        (["HEAD~1..HEAD", "gpu/other.yaml"], "gpu/other.yaml: the file does not exist in revision `HEAD~1`"),
        (["HEAD~1..HEAD", "missing/fleet.yaml"], "missing: the folder does not exist"),
        (["--output=x..HEAD", "gpu/fleet.yaml"], "No such option"),
    ],
)
def test_wrong_git_range_is_refused_with_a_fix(repository: Rayhelm, arguments: list[str], words: str) -> None:
    answer = repository("diff", *arguments)
    assert answer.code in (1, 2)
    assert words in answer.err
    assert "Traceback" not in answer.err


def test_git_range_outside_a_repository_is_refused(rayhelm: Rayhelm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(Path.cwd().parent))
    write("fleet.yaml", FLEET)
    answer = rayhelm("diff", "HEAD~1..HEAD", "fleet.yaml")
    assert answer.code == 1
    assert "in no git repository" in answer.err


def test_problem_of_a_revision_names_revision_file_and_line(repository: Rayhelm) -> None:
    write("gpu/fleet.yaml", FLEET.replace("context: 8192", "context: many"))
    git("commit", "--quiet", "--all", "--message=broken")
    answer = repository("diff", "HEAD~1..HEAD", "gpu/fleet.yaml")
    assert answer.code == 1
    assert answer.err.startswith("HEAD:gpu/fleet.yaml:11: models.chat.context")


# -- a live cluster --------------------------------------------------------------------------------------------------

PATHS = "/apis/ray.io/v1/namespaces/models/{}"
OPERATORS = "/apis/apps/v1/deployments"


def record(fleet: str, kuberay: str = "1.7.0", **changes: Any) -> dict[str, Any]:
    """Answers of a cluster on which the fleet is installed and rolled out."""
    services, clusters = [], []
    for key, release in side(fleet).releases.items():
        if key[1] != "ray-service":
            continue
        name = f"{release.name}-abcde"
        active = {"activeServiceStatus": {"rayClusterName": name}}
        services.append({**release.service, "status": active, **changes})
        about = {"name": name, "namespace": "models", "annotations": {"ray.io/kuberay-version": f"v{kuberay}"}}
        spec = deepcopy(release.service["spec"]["rayClusterConfig"])
        for group in spec["workerGroupSpecs"]:  # Ray's autoscaler writes these
            group |= {"replicas": 2, "scaleStrategy": {"workersToDelete": ["idle"]}}
        clusters.append({"metadata": about, "spec": spec})
    template = {"spec": {"containers": [{"image": f"quay.io/kuberay/operator:v{kuberay}"}]}}
    operator = {"metadata": {"name": "kuberay-operator"}, "spec": {"selector": {}, "template": template}}
    return {
        PATHS.format("rayservices"): {"items": services},
        PATHS.format("rayclusters"): {"items": clusters},
        OPERATORS: {"items": [operator]},
    }


def compare_live(answers: dict[str, Any], fleet: str, forbidden: frozenset[str] = frozenset()) -> Any:
    new = side(fleet)
    return compare_sides(read_live(ClusterReader(RecordedTransport(answers, forbidden), "`lab`"), new, "main"), new)


def test_live_cluster_that_equals_the_fleet_has_no_change() -> None:
    report = compare_live(record(FLEET), FLEET)
    assert report.releases == ()
    assert report.unchanged == 2


def test_live_cluster_shows_what_the_fleet_changes() -> None:
    assert of(compare_live(record(FLEET), POOLED), "chat").effect == "new cluster"


def test_live_cluster_shows_an_edit_that_never_reached_the_pods() -> None:
    """The RayService has the new manifest, and the RayCluster the old one, as after an edit under None."""
    answers = record(POOLED)
    answers[PATHS.format("rayclusters")] = record(FLEET)[PATHS.format("rayclusters")]
    assert of(compare_live(answers, POOLED), "chat").effect == "new cluster"


def test_live_cluster_with_another_operator_gets_its_forecast() -> None:
    report = compare_live(record(FLEET, "1.6.2"), FLEET)
    assert of(report, "chat").effect == "in place"
    assert any("1.6.2 to 1.7.0" in note for note in report.notes)


@pytest.mark.parametrize(
    "config",
    [
        '{"applications": ["x"]}',
        '{"applications": [{"args": "x"}]}',
        '{"applications": [{"name": "chat", "args": {"llm_configs": ["x", {"deployment_config": "x"}]}}]}',
        '{"applications": [{"name": "chat", "args": {"llm_configs": [{"model_loading_config": 7}]}}]}',
        "[" * 100_000,
    ],
    ids=["application", "arguments", "deployment", "model", "levels"],
)
def test_live_serve_config_of_another_form_is_compared(config: str) -> None:
    answers = record(FLEET)
    for item in answers[PATHS.format("rayservices")]["items"]:
        item["spec"] = {**item["spec"], "serveConfigV2": config}
    assert of(compare_live(answers, FLEET), "chat").effect


def test_live_object_of_another_form_is_noted_and_hides_no_other() -> None:
    answers = record(FLEET)
    odd = deepcopy(answers[PATHS.format("rayservices")]["items"][0])
    odd["metadata"] |= {"name": "odd", "namespace": "models"}
    odd["spec"]["rayClusterConfig"]["workerGroupSpecs"] = "x"
    answers[PATHS.format("rayservices")]["items"].insert(0, odd)
    report = compare_live(answers, FLEET)
    assert report.releases == ()
    assert any("RayService models/odd: spec.rayClusterConfig.workerGroupSpecs" in note for note in report.notes)


def test_service_that_only_the_cluster_has_is_removed() -> None:
    without = FLEET.replace("  embed: {source: BAAI/bge-m3, unpinnedReason: only rendered, task: embed}\n", "")
    report = compare_live(record(FLEET), without.replace(", embed", ""))
    assert of(report, "embed").effect == "uninstall"


def test_cluster_without_kuberay_is_named_with_a_fix() -> None:
    with pytest.raises(MissingError, match="KubeRay is not installed"):
        compare_live({}, FLEET)


def test_cluster_that_forbids_reading_is_named_with_the_role_to_create() -> None:
    with pytest.raises(
        RayhelmError, match=r"forbids reading rayservices in namespace models(?s:.*)kubectl create role"
    ):
        compare_live(record(FLEET), FLEET, frozenset({PATHS.format("rayservices")}))


def test_operator_version_comes_from_ray_clusters_if_deployments_are_forbidden() -> None:
    report = compare_live(record(FLEET, "1.6.2"), FLEET, frozenset({OPERATORS}))
    assert any("1.6.2 to 1.7.0" in note for note in report.notes)


def test_cluster_that_does_not_answer_ends_with_3(rayhelm: Rayhelm) -> None:
    pytest.importorskip("kubernetes")
    write("fleet.yaml", FLEET)
    write("config", CONFIG)
    answer = rayhelm("diff", "fleet.yaml", "--kubeconfig", "config")
    assert answer.code == 3
    assert "does not answer" in answer.err


CONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: there, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {token: x}}]
contexts: [{name: there, context: {cluster: there, user: me}}]
current-context: there
"""
