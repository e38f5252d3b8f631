"""The effect of an edit of a fleet, and the edit of the stand-ins with the same effect."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rayhelm.deploy.render.files import Rendered, render_plan
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.deploy.values.ray_service.resources import build_resources
from rayhelm.planner.planner import plan_fleet
from rayhelm.run.rehearsal.change import EDIT_VARIABLE, ServiceEdit, classify_edit, mirror_edits, plan_steps
from rayhelm.run.rehearsal.external import remove_external
from rayhelm.run.rehearsal.without_gpus import StandInSet, build_stand_ins
from rayhelm.run.standin.cluster import GROUP, StandInCluster
from shared.fleets import load

PLACE = StandInCluster(kuberay="1.6.2", image=RayImage(repository="here.example/ray", tag="cpu", includes_rayhelm=True))
FLEET = """\
    fleet: small
    clusters:
      main:
        apiServer: {cidrs: [10.0.0.1/32]}
        weights: {storageClass: nfs}
        gateway: {replicas: 1, allowedClients: [apps]}
    pools:
      gpu: {gpu: L4-24GB, nodes: 4, gpusPerNode: 1}
    models:
      chat: {source: Qwen/Qwen3-8B, unpinnedReason: only rendered, context: 8192, service: one}
    tenants:
      apps: {models: [chat], requestsPerMinute: 60}
"""
MORE = (
    "      search: {source: BAAI/bge-m3, unpinnedReason: only rendered, task: embed, gpuFraction: 0.5, service: %s}\n"
)


def wider(service: str) -> str:
    """The fleet with another model."""
    return FLEET.replace("    tenants:", f"{MORE % service}    tenants:").replace("[chat]", "[chat, search]")


def rendered(text: str = FLEET) -> Rendered:
    return render_plan(plan_fleet(load(text)))


def stand_ins(text: str = FLEET) -> StandInSet:
    return remove_external(build_stand_ins(rendered(text), PLACE, cluster="main"))


def with_values(them: StandInSet, change: Callable[[RayServiceValues], RayServiceValues]) -> StandInSet:
    """Change the values of the service, as another fleet file would; its stand-in stays the same."""
    return replace(them, services={name: change(values) for name, values in them.services.items()})


def copy(model: Any, **change: Any) -> Any:
    return model.model_copy(update=change)


def of_model(values: RayServiceValues, **change: Any) -> RayServiceValues:
    application = values.serve.applications["chat"]
    models = {"chat": copy(application.models["chat"], **change)}
    return copy(values, serve=copy(values.serve, applications={"chat": copy(application, models=models)}))


def of_group(values: RayServiceValues, **change: Any) -> RayServiceValues:
    return copy(values, worker_groups={name: copy(group, **change) for name, group in values.worker_groups.items()})


def apply(
    change: Callable[[RayServiceValues], RayServiceValues],
) -> tuple[RayServiceValues, RayServiceValues, ServiceEdit]:
    """Stand-ins before and after, and the edit."""
    before, after, edits = mirror_edits(stand_ins(), with_values(stand_ins(), change))
    return service(before), service(after), edits["one"]


def service(them: StandInSet) -> RayServiceValues:
    (values,) = (each.values for each in them.releases if isinstance(each.values, RayServiceValues))
    return values


def model(values: RayServiceValues) -> Any:
    return values.serve.applications["chat"].models["chat"]


def classify_stand_in_edit(before: RayServiceValues, after: RayServiceValues) -> str:
    release = next(each for each in stand_ins().releases if each.chart == "ray-service")
    return classify_edit(release, before, after).effect


POD_EDITS: dict[str, Callable[[RayServiceValues], RayServiceValues]] = {
    "another image": lambda values: copy(values, image=copy(values.image, tag="another")),
    "more memory": lambda values: of_group(values, resources=build_resources(cpu="8", memory="64Gi")),
    "two GPUs": lambda values: of_group(values, gpu=copy(values.worker_groups["gpu"].gpu, count=2)),
    "other nodes": lambda values: of_group(values, node_selector={"disk": "fast"}),
    "an environment": lambda values: copy(values, head=copy(values.head, env={"A": "1"})),
}


@pytest.mark.parametrize("edit", POD_EDITS)
def test_pod_edit_creates_a_new_cluster_of_stand_ins(edit: str) -> None:
    before, after, what = apply(POD_EDITS[edit])
    assert what.effect == "new cluster"
    assert after.head.env[EDIT_VARIABLE] == after.worker_groups[GROUP].env[EDIT_VARIABLE] == what.mark
    assert EDIT_VARIABLE not in before.head.env
    assert classify_stand_in_edit(before, after) == "new cluster"


def test_pod_edit_under_strategy_none_is_held_back_with_a_fix() -> None:
    none = lambda values: copy(values, upgrade=copy(values.upgrade, strategy="None"))  # noqa: E731
    before, after, what = apply(lambda values: none(POD_EDITS["another image"](values)))
    assert what.effect == "held back"
    assert "helm uninstall" in what.details[0]
    assert classify_stand_in_edit(before, none(after)) == "held back"


def test_engine_edit_changes_the_engine_of_the_stand_in() -> None:
    engine = model(stand_ins().services["one"]).engine
    before, after, what = apply(lambda values: of_model(values, engine=copy(engine, max_model_len=4096)))
    assert what.effect == "serve config"
    assert what.details == ("Ray Serve receives another configuration of chat",)
    assert model(before).engine.seed is None
    assert model(after).engine.seed is not None
    assert classify_stand_in_edit(before, after) == "serve config"


def test_autoscaling_edit_keeps_the_engine_of_the_stand_in() -> None:
    own = model(stand_ins().services["one"]).autoscaling
    before, after, what = apply(lambda values: of_model(values, autoscaling=copy(own, upscale_delay_seconds=77)))
    assert what.effect == "serve config"
    assert model(after).engine == model(before).engine
    assert model(after).autoscaling.upscale_delay_seconds == 77
    assert classify_stand_in_edit(before, after) == "serve config"


def test_stand_in_has_the_shutdown_time_of_the_fleet() -> None:
    before, after, _ = apply(lambda values: of_model(values, graceful_shutdown_seconds=20))
    assert model(before).graceful_shutdown_seconds == 60, "the deletion delay of a replaced cluster in a rehearsal"
    assert model(after).graceful_shutdown_seconds == 20


def test_replica_limit_edit_changes_autoscaling_without_more_replicas() -> None:
    own = model(stand_ins().services["one"]).autoscaling
    before, after, what = apply(
        lambda values: copy(
            of_group(of_model(values, autoscaling=copy(own, max_replicas=3)), max_replicas=3),
            autoscaler=copy(values.autoscaler, enabled=True),
        )
    )
    assert model(after).autoscaling.max_replicas == 1
    assert model(after).autoscaling != model(before).autoscaling
    assert any("each stand-in has one replica" in sentence for sentence in what.details)


def test_application_edit_redeploys_its_models() -> None:
    def more_of_it(values: RayServiceValues) -> RayServiceValues:
        application = values.serve.applications["chat"]
        ingress = copy(application.ingress, max_replicas=7)
        return copy(values, serve=copy(values.serve, applications={"chat": copy(application, ingress=ingress)}))

    before, after, what = apply(more_of_it)
    assert what.effect == "serve config"
    assert model(after).engine.seed != model(before).engine.seed


def test_worker_limit_edit_does_not_change_the_active_cluster() -> None:
    before, after, what = apply(lambda values: of_group(values, max_replicas=4))
    assert what.effect == "values"
    assert "with the next new cluster" in what.details[0]
    assert classify_stand_in_edit(before, after) == "values"


def test_last_worker_group_is_added_in_place() -> None:
    def more_of_it(values: RayServiceValues) -> RayServiceValues:
        groups = {
            **values.worker_groups,
            "more": copy(values.worker_groups["gpu"], min_replicas=0),
        }
        return copy(values, worker_groups=groups)

    before, after, what = apply(more_of_it)
    assert (what.effect, what.added) == ("in place", ("more",))
    assert list(after.worker_groups) == [GROUP, f"{GROUP}-more"]
    assert after.worker_groups[f"{GROUP}-more"].min_replicas == 0
    assert classify_stand_in_edit(before, after) == "in place"


def test_added_model_fits_on_the_worker_before_the_change() -> None:
    old, new = stand_ins(FLEET), stand_ins(wider("one"))
    groups = of_group(new.services["one"], min_replicas=1).worker_groups
    roomy = replace(old, services={"one": copy(old.services["one"], worker_groups=groups)})
    before, after, edits = mirror_edits(roomy, new)
    assert edits["one"].effect == "serve config"
    assert service(before).worker_groups == service(after).worker_groups
    assert set(service(after).serve.applications) == {"chat", "search"}


def test_equal_fleets_have_no_steps() -> None:
    before, after, edits = mirror_edits(stand_ins(), stand_ins())
    assert before == after
    assert plan_steps(before, after, edits) == []


def test_added_releases_are_installed_and_removed_ones_uninstalled_last() -> None:
    two = wider("two")
    come = plan_steps(*mirror_edits(stand_ins(FLEET), stand_ins(two)))
    made = [(step.release.chart, step.effect) for step in come]
    assert made.index(("ray-service", "install")) < made.index(("gateway", "values"))
    go = plan_steps(*mirror_edits(stand_ins(two), stand_ins(FLEET)))
    assert (go[-1].release.name, go[-1].effect) == ("two", "uninstall")


def test_external_services_are_left_out_with_a_note() -> None:
    outside = FLEET.replace(
        "gateway: {replicas: 1, allowedClients: [apps]}",
        "gateway: {replicas: 1, allowedClients: [apps], host: a.example, ingress: {className: nginx, tlsSecret: tls}}\n"
        '        redis: {address: "redis.ray-state:6379", passwordSecret: {name: redis, key: password}}\n'
        "        prometheus: {url: http://prometheus.monitoring:9090}",
    )
    alone = stand_ins(outside)
    assert not service(alone).gcs_fault_tolerance.enabled
    assert service(alone).scraping.kind == "None"
    for words in ("no Redis", "`scraping` is left out", "Ingress, HTTPRoute"):
        assert any(words in note for note in alone.notes), words
