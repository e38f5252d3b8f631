"""One test for each behavior of what the chart platform renders."""

from typing import Any

from charts import kit
from charts.kit import only
from charts.oracles import built_in
from rayhelm.facts.versions import versions

Object = dict[str, Any]


def rendered(overlay: Object | None = None, base: str = "platform/minimal") -> list[Object]:
    return kit.rendered(overlay, chart="platform", base=base, release="platform", namespace="rayhelm-system")


# -- classes ---------------------------------------------------------------------------------------------------------


def test_priority_classes_order_gateway_heads_workers_and_batch() -> None:
    classes = {item["metadata"]["name"]: item for item in rendered() if item["kind"] == "PriorityClass"}
    values = [classes[f"rayhelm-{role}"]["value"] for role in ("gateway", "head", "workers", "batch")]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 4


def test_no_priority_class_is_the_global_default() -> None:
    classes = [item for item in rendered() if item["kind"] == "PriorityClass"]
    assert len(classes) == 4
    assert not any(item.get("globalDefault") for item in classes)


def test_batch_preempts_no_pod_and_workers_do() -> None:
    assert only(rendered(), "PriorityClass", "rayhelm-batch")["preemptionPolicy"] == "Never"
    assert only(rendered(), "PriorityClass", "rayhelm-workers")["preemptionPolicy"] == "PreemptLowerPriority"


def test_priority_classes_are_in_the_range_of_users() -> None:
    class_ = only(rendered(), "PriorityClass", "rayhelm-head")
    assert class_["value"] <= 1_000_000_000
    built_in(class_, versions().kubernetes.default)


def test_runtime_class_is_rendered_only_when_it_is_named() -> None:
    assert not [item for item in rendered() if item["kind"] == "RuntimeClass"]
    made = only(rendered({"runtimeClasses": {"nvidia": {"handler": "nvidia"}}}), "RuntimeClass")
    assert made["handler"] == "nvidia"
    assert "scheduling" not in made


def test_runtime_class_selects_its_nodes() -> None:
    class_ = {"handler": "nvidia", "nodeSelector": {"example.com/gpu": "1"}}
    made = only(rendered({"runtimeClasses": {"nvidia": class_}}), "RuntimeClass")
    assert made["scheduling"] == {"nodeSelector": {"example.com/gpu": "1"}}
