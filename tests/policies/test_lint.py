"""`rayhelm lint` says of fleets and of manifests what the API server would say, with file and line."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.kit.cases import CASES, FOLDER, NAMES, case, documents, previous_objects, rules_of
from rayhelm.check.lint.fleet import lint_fleet
from rayhelm.check.lint.manifests import lint_manifests
from rayhelm.check.lint.ray_service.check import RULES
from rayhelm.deploy.charts.helm import charts_dir, render
from rayhelm.errors import FleetError, Problem
from shared.command import run

Object = dict[str, Any]

SINGLE = charts_dir().parent / "values/single-gpu/fleet.yaml"


def problems(path: Path, policies: Path | None = None) -> tuple[Problem, ...]:
    with pytest.raises(FleetError) as caught:
        lint_manifests(path, policies)
    return caught.value.problems


def written(folder: Path, *objects: Object) -> Path:
    path = folder / "manifests.yaml"
    path.write_text(yaml.safe_dump_all(objects, sort_keys=False))
    return path


def line(problem: Problem) -> str:
    assert problem.line
    return Path(problem.file).read_text().splitlines()[problem.line - 1].strip()


# -- manifests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_good_objects_have_no_problem(name: str) -> None:
    said, *_ = lint_manifests(FOLDER / name / "good.yaml").done
    assert said.endswith(f"objects pass {len(NAMES)} policies")


@pytest.mark.parametrize("name", [name for name in NAMES if previous_objects(name)])
def test_of_a_change_only_the_end_is_seen_and_nothing_reported(name: str) -> None:
    assert lint_manifests(FOLDER / name / "bad.yaml").done


@pytest.mark.parametrize("name", [name for name in NAMES if not previous_objects(name)])
def test_each_bad_object_is_reported_with_the_rules_that_it_breaks(name: str) -> None:
    found = [problem for problem in problems(FOLDER / name / "bad.yaml") if problem.rule not in RULES]
    starts = [number for number, text in enumerate((FOLDER / name / "bad.yaml").read_text().splitlines(), 1)
              if text.startswith("apiVersion:")]  # fmt: skip
    reported: dict[int, set[str]] = {}
    for problem in found:
        assert problem.line
        assert problem.fix
        reported.setdefault(max(start for start in starts if start <= problem.line), set()).add(problem.rule)
    items = documents(FOLDER / name / "bad.yaml")
    wanted = {start: rules_of(item) for start, item in zip(starts, items, strict=True)}
    assert reported == {start: rules for start, rules in wanted.items() if rules}


@pytest.mark.parametrize(
    ("policy", "name", "kind", "stands"),
    [
        ("token-auth", "disabled", "RayService", "mode: disabled"),
        ("token-auth", "overridden-in-worker", "RayService", "- name: RAY_AUTH_MODE"),
        ("image-source", "worker", "RayService", "image: rayproject/ray-llm:latest"),
        ("image-source", "autoscaler", "RayService", "image: rayproject/ray"),
        ("host-namespaces", "memory", "RayService", "hostIPC: true"),
        ("host-namespaces", "port", "RayService", "hostPort: 8000"),
        ("service-exposure", "node-port", "Service", "type: NodePort"),
        ("service-exposure", "custom-serve-service", "RayService", "serveService:"),
        ("dashboard-exposure", "ingress-by-kuberay", "RayService", "enableIngress: true"),
        ("dashboard-exposure", "ingress-to-the-head", "Ingress", "name: chat-head-svc"),
        ("upgrade-strategy", "unknown", "RayService", "type: RollingUpdate"),
        ("remote-code", "second-model", "RayService", '"trust_remote_code": true'),
        ("remote-code", "vllm-pod", "Pod", "- --trust-remote-code"),
        ("model-revision", "second-model", "RayService", '"model_source": "Qwen/Qwen3-8B"'),
        ("model-revision", "entrypoint", "RayJob", "entrypoint: vllm serve Qwen/Qwen3-8B"),
        ("request-timeout", "zero", "RayService", '"request_timeout_s": 0'),
        ("request-timeout", "no-options", "RayService", "serveConfigV2: |"),
    ],
)
def test_problem_is_reported_at_the_line_of_its_field(
    tmp_path: Path, policy: str, name: str, kind: str, stands: str
) -> None:
    text = next(part for part in (FOLDER / policy / "bad.yaml").read_text().split("---\n")
                if _is(yaml.safe_load(part), name, kind))  # fmt: skip
    item = yaml.safe_load(text)
    config = item["spec"].pop("serveConfigV2", None)
    path = written(tmp_path, item)
    if config:
        block = "".join(f"    {row}\n" for row in config.splitlines())
        path.write_text(path.read_text().replace("spec:\n", f"spec:\n  serveConfigV2: |\n{block}", 1))
    (problem,) = problems(path)
    assert line(problem) == stands


def _is(item: Object, name: str, kind: str) -> bool:
    return (item["metadata"]["name"], item["kind"]) == (name, kind)


def test_of_several_fields_alike_the_one_is_reported_that_is_wrong(tmp_path: Path) -> None:
    item = case("image-source", "worker")
    groups = item["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    good = case("gpu-owner", "owned", good=True)["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
    item["spec"]["rayClusterConfig"]["workerGroupSpecs"] = [{**good, "groupName": "first"}, *groups]
    (problem,) = problems(written(tmp_path, item))
    assert problem.path == "spec.rayClusterConfig.workerGroupSpecs[1].template.spec.containers[0].image"


def test_pod_templates_of_controllers_are_judged(tmp_path: Path) -> None:
    pod = case("host-namespaces", "pod-with-a-gpu", "Pod")
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    notebook: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "notebook"}}
    nightly: Object = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}}
    notebook["spec"] = {"template": template}
    nightly["spec"] = {"jobTemplate": {"spec": {"template": template}}}
    found = problems(written(tmp_path, notebook, nightly))
    assert [(problem.rule, problem.path) for problem in found] == [
        ("host-namespaces", "spec.template.spec.hostNetwork"),
        ("host-namespaces", "spec.jobTemplate.spec.template.spec.hostNetwork"),
    ]


def test_items_of_a_list_are_judged_one_by_one(tmp_path: Path) -> None:
    items = [case("token-auth", "token", good=True), case("token-auth", "disabled")]
    (problem,) = problems(written(tmp_path, {"apiVersion": "v1", "kind": "List", "items": items}))
    assert problem.rule == "auth-reason"
    assert line(problem) == "mode: disabled"


def test_folder_is_judged_with_its_namespaces(tmp_path: Path) -> None:
    items = documents(FOLDER / "upgrade-strategy/bad.yaml")
    written(tmp_path, *[item for item in items if item["kind"] == "Namespace"]).rename(tmp_path / "namespaces.yaml")
    written(tmp_path, case("upgrade-strategy", "larger-than-surge"))
    assert [problem.rule for problem in problems(tmp_path)] == ["upgrade-surge"]
    (tmp_path / "namespaces.yaml").unlink()
    assert lint_manifests(tmp_path).done, "of a namespace of which nothing is known nothing can be said"


def test_policies_among_the_objects_are_used(tmp_path: Path) -> None:
    values = {"policies": {"tokenAuth": {"action": "Warn", "reason": "two services break it"}}}
    path = tmp_path / "all.yaml"
    platform = render("platform", "platform", "rayhelm-system", values)
    path.write_text(platform + "---\n" + yaml.safe_dump(case("token-auth", "disabled")))
    (warning,) = lint_manifests(path).warnings
    assert "auth" in warning
    path.write_text(platform + "---\n" + yaml.safe_dump(case("host-namespaces", "memory")))
    assert [problem.rule for problem in problems(path)] == ["host-namespaces"]


def test_policies_of_another_file_are_used(tmp_path: Path) -> None:
    only = FOLDER / "host-namespaces/policy.yaml"
    assert lint_manifests(FOLDER / "token-auth/bad.yaml", only).done
    assert {problem.rule for problem in problems(FOLDER / "host-namespaces/bad.yaml", only)} == {
        "host-namespaces",
        "host-ports",
    }
    (problem,) = problems(only, FOLDER / "host-namespaces/good.yaml")
    assert "no policy" in problem.message


def test_manifests_of_two_clusters_are_judged_separately(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("single-gpu", "three-tiers"):
        fleet = str(SINGLE.parent.parent / name)
        assert run(capsys, monkeypatch, "render", fleet, "--manifests", "-o", str(tmp_path / name)).code == 0
    assert lint_manifests(tmp_path / "single-gpu/manifests").done
    (problem,) = problems(tmp_path / "three-tiers/manifests")
    assert "several clusters" in problem.message
    assert f"rayhelm lint {tmp_path / 'three-tiers/manifests'} --policies" in str(problem.fix)
    edge = tmp_path / "three-tiers/manifests/platform/edge/platform.yaml"
    assert lint_manifests(tmp_path / "three-tiers/manifests/ray-service/qwen3-8b.yaml", edge).done


@pytest.mark.parametrize(
    ("text", "says", "at"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {a: 1, a: 2}\n", "is a duplicate", 4),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {<<: {a: 1}}\n", "merge keys", 4),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x\n", "not valid YAML", 4),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n---\nname: x\n", "not an object of Kubernetes", 5),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_line(tmp_path: Path, text: str, says: str, at: int) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    (problem,) = problems(path)
    assert says in problem.message
    assert problem.line == at


# -- fleets ----------------------------------------------------------------------------------------------------------


def test_lint_of_fleet_reports_the_policies_that_it_passes() -> None:
    assert (
        f"cluster `main`: {len(NAMES)} admission policies accept every object" in lint_fleet(SINGLE, ask_ray=False).done
    )


def test_model_without_commit_and_reason_is_reported_at_its_line_of_the_fleet_file(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    rows = [row for row in SINGLE.read_text().splitlines() if "unpinnedReason" not in row]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(FleetError) as caught:
        lint_fleet(path, ask_ray=False)
    (problem,) = caught.value.problems
    assert problem.rule == "model-revision"
    assert line(problem) == "llama-8b:"
    assert "unpinnedReason" in str(problem.fix)


# -- command ---------------------------------------------------------------------------------------------------------


def test_lint_exits_with_1_and_reports_problems_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(capsys, monkeypatch, "lint", str(FOLDER / "request-timeout/bad.yaml"), "--format", "json")
    assert answer.code == 1
    reported = json.loads(answer.out)["problems"]
    assert len(reported) == len([one for one in CASES if one.policy == "request-timeout" and not one.good])
    assert {each["rule"] for each in reported} == {"request-timeout"}
    assert all(each["line"] and each["fix"] and each["file"] for each in reported)


def test_lint_exits_with_0_when_all_objects_pass(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(capsys, monkeypatch, "lint", str(FOLDER / "request-timeout/good.yaml"))
    assert answer.code == 0
    assert "objects pass" in answer.out


def test_render_writes_no_manifests_that_policies_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("\n".join(row for row in SINGLE.read_text().splitlines() if "unpinnedReason" not in row) + "\n")
    assert run(capsys, monkeypatch, "render", str(path)).code == 0, "values are written, with a warning"
    answer = run(capsys, monkeypatch, "render", str(path), "--manifests")
    assert answer.code == 1
    assert "without a commit" in answer.err
    assert not (tmp_path / "manifests").exists()


def test_lint_refuses_options_that_would_have_no_effect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = str(FOLDER / "request-timeout/good.yaml")
    answer = run(capsys, monkeypatch, "lint", "values/single-gpu", "--policies", str(FOLDER))
    assert (answer.code, "`--policies` is for Kubernetes objects" in answer.err) == (2, True)
    for option in ("--serve", "--no-serve"):
        answer = run(capsys, monkeypatch, "lint", good, option)
        assert (answer.code, f"`{option}` is for a fleet" in answer.err) == (2, True)


def test_object_with_a_field_of_the_wrong_type_is_refused_in_plain_words(tmp_path: Path) -> None:
    item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": 5}}
    found = problems(written(tmp_path, item))
    assert any("does not have the form that policy" in problem.message for problem in found)
    assert all(problem.fix for problem in found)
