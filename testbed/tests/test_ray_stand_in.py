"""The stand-in for Ray answers as Ray would, and only where a head is."""

import json
from typing import Any

import pytest

from shared.ray_stand_in_world import (
    APPLICATIONS,
    CHAT,
    CONFIG,
    World,
    dashboard,
    head,
    pod,
    raycluster,
    said,
    workers,
)

TOKEN_MODE = [
    {"name": "RAY_AUTH_MODE", "value": "token"},
    {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "web-abcde", "key": "auth_token"}}},
]


@pytest.fixture
def world() -> World:
    return World()


# -- what was PUT ------------------------------------------------------------------------------------------------------


def test_before_the_first_put_there_are_no_applications(world: World) -> None:
    assert said(world.get()) == {"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": None}


def test_what_was_put_is_running_once_the_workers_are_ready(world: World) -> None:
    assert world.put().status == 200
    chat = said(world.get())["applications"]["chat"]
    assert (chat["status"], chat["message"], chat["route_prefix"]) == ("RUNNING", "", "/")
    assert chat["deployments"]["Model"]["status"] == "HEALTHY"
    assert chat["deployed_app_config"] == CHAT


def test_application_without_a_name_is_rays_default(world: World) -> None:
    world.put({"applications": [{"import_path": "chat:app"}]})
    assert world.status("default") == "RUNNING"


def test_application_is_deploying_until_the_minimum_of_each_group_is_ready(world: World) -> None:
    world.ray_pods = [head(), *workers(1)]
    world.put()
    chat = said(world.get())["applications"]["chat"]
    assert (chat["status"], chat["message"]) == ("DEPLOYING", "group gpu lacks 1 Ready pods")
    assert chat["deployments"]["Model"]["status"] == "UPDATING"
    world.ray_pods = [head(), *workers(2)]
    assert world.status() == "RUNNING"


def test_every_host_of_a_replica_has_to_be_ready(world: World) -> None:
    world.rayclusters = [raycluster(workerGroupSpecs=[{"groupName": "gpu", "minReplicas": 2, "numOfHosts": 2}])]
    world.ray_pods = [head(), *workers(3)]
    world.put()
    assert world.status() == "DEPLOYING"
    world.ray_pods = [head(), *workers(4)]
    assert world.status() == "RUNNING"


@pytest.mark.parametrize(
    "changes",
    [{"ready": "False"}, {"phase": "Pending"}, {"phase": "Failed"}, {"owner": "uid-of-another"}, {"group": "cpu"}],
    ids=str,
)
def test_only_ready_pods_of_the_group_count(world: World, changes: dict[str, Any]) -> None:
    world.ray_pods = [head(), *workers(1), pod("other", "worker", ip="10.0.1.9", **changes)]
    world.put()
    assert world.status() == "DEPLOYING"


@pytest.mark.parametrize("group", [{"minReplicas": 0}, {"minReplicas": 2, "suspend": True}, {}], ids=str)
def test_group_without_a_minimum_is_not_waited_for(world: World, group: dict[str, Any]) -> None:
    world.rayclusters = [raycluster(workerGroupSpecs=[{"groupName": "gpu", **group}])]
    world.ray_pods = [head()]
    world.put()
    assert world.status() == "RUNNING"


def test_application_that_ran_is_unhealthy_while_a_worker_is_lost(world: World) -> None:
    world.put()
    assert world.status() == "RUNNING"
    world.ray_pods = [head(), *workers(1)]
    chat = said(world.get())["applications"]["chat"]
    assert (chat["status"], chat["deployments"]["Model"]["status"]) == ("UNHEALTHY", "UNHEALTHY")
    world.ray_pods = [head(), *workers(2)]
    assert world.status() == "RUNNING"


def test_put_redeploys_only_what_it_changes(world: World) -> None:
    world.put({"applications": [CHAT, {**CHAT, "name": "code", "route_prefix": "/code"}]})
    assert world.status() == world.status("code") == "RUNNING"
    world.ray_pods = [head(), *workers(1)]
    world.put({"applications": [CHAT, {**CHAT, "name": "code", "route_prefix": "/other"}]})
    assert (world.status(), world.status("code")) == ("UNHEALTHY", "DEPLOYING")


def test_application_that_never_ran_is_still_deploying_when_it_is_put_again(world: World) -> None:
    world.ray_pods = [head(), *workers(1)]
    world.put()
    world.put()
    assert world.status() == "DEPLOYING"


def test_application_that_is_no_longer_put_is_removed(world: World) -> None:
    world.put()
    world.put({"applications": []})
    assert said(world.get())["applications"] == {}


def test_target_capacity_is_reported(world: World) -> None:
    world.put({**CONFIG, "target_capacity": 50})
    assert said(world.get())["target_capacity"] == 50


def test_applications_that_were_put_are_not_imperative_ones(world: World) -> None:
    world.put()
    assert said(world.ask("GET", f"{dashboard()}?api_type=imperative"))["applications"] == {}
    assert world.ask("GET", f"{dashboard()}?api_type=new").status == 400


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, "applications"),
        ({"applications": [{"name": "chat"}]}, "import_path"),
        ({"applications": "chat"}, "applications"),
        ([], "Input should be"),
        ({"applications": [], "http_options": 8000}, "http_options"),
    ],
    ids=str,
)
def test_wrong_configuration_is_refused_and_the_previous_stays(world: World, config: Any, named: str) -> None:
    world.put()
    refusal = world.put(config)
    assert refusal.status == 400
    assert named in refusal.body.decode()
    assert world.status() == "RUNNING"
    assert [put["status"] for put in world.puts()] == [200, 400]


def test_body_that_is_not_json_gets_500_as_in_ray(world: World) -> None:
    answer = world.ask("PUT", dashboard(), b"applications: []")
    assert answer.status == 500
    assert "JSONDecodeError" in answer.body.decode()
    assert world.puts()[0]["body"] == "applications: []"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/version"),
        ("GET", "/api/serve/applications"),
        ("DELETE", APPLICATIONS),
        ("POST", "/api/jobs/"),
        ("GET", "/-/healthz"),
    ],
)
def test_whatever_else_a_dashboard_can_do_is_not_found(world: World, method: str, path: str) -> None:
    answer = world.ask(method, f"http://web-abcde-head-svc.models.svc.cluster.local:8265{path}")
    assert answer.status == 404
    assert path in answer.body.decode()


# -- dead hosts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("other-head-svc.models.svc.cluster.local:8265", "has a head Service other-head-svc"),
        ("web-abcde-head-svc.elsewhere.svc.cluster.local:8265", "no RayCluster of namespace elsewhere"),
        ("web-abcde-head-svc.models.svc.other.domain:8265", "neither"),
        ("web-abcde-head-svc.models.svc:8265", "neither"),
        ("web-abcde-head-svc:8265", "neither"),
        ("x.web-abcde-head-svc.models.svc.cluster.local:8265", "neither"),
        (":8265", "an empty host"),
        ("web-abcde-head-svc.models.svc.cluster.local:8266", "the dashboard of pod-head-1 listens on 8265"),
        ("web-abcde-head-svc.models.svc.cluster.local", "no process listens on port 80"),
        ("10.0.0.1:8265", "Serve on pod-head-1 listens on 8000"),
        ("10.0.0.9:8000", "no head that is Running and Ready has the IP 10.0.0.9"),
        ("10.0.1.0:8000", "a worker has it"),
        ("127.0.0.1:8000", "no head"),
        (":8000", "an empty host"),
    ],
)
def test_host_that_is_not_a_head_gets_502(world: World, host: str, reason: str) -> None:
    world.put()
    for path in (APPLICATIONS, "/-/healthz"):
        answer = world.ask("GET", f"http://{host}{path}")
        assert answer.status == 502
        assert reason in answer.body.decode()


@pytest.mark.parametrize(
    "changes",
    [{"ready": "False"}, {"phase": "Pending"}, {"phase": "Succeeded"}, {"ip": ""}, {"owner": "uid-of-another"}],
    ids=str,
)
def test_head_that_is_not_running_and_ready_gets_502(world: World, changes: dict[str, Any]) -> None:
    world.put()
    world.ray_pods = [head(**changes), *workers(2)]
    assert world.health().status == 502
    assert world.get().status == (502 if "ip" not in changes else 200)


def test_cluster_with_two_ready_heads_gets_502(world: World) -> None:
    world.ray_pods = [head(), head("head-2", ip="10.0.0.2")]
    assert b"2 heads" in world.get().body


def test_ip_of_two_pods_gets_502(world: World) -> None:
    world.put()
    world.ray_pods = [head(), *workers(2), pod("twin", "worker", ip="10.0.0.1")]
    answer = world.health()
    assert answer.status == 502
    assert b"2 pods have the IP 10.0.0.1" in answer.body


def test_every_host_is_dead_until_the_api_server_was_seen() -> None:
    assert World(ready=lambda: False).get().status == 502


@pytest.mark.parametrize("target", ["https://web-abcde-head-svc.models.svc.cluster.local:8265/", "ftp://x/", "x"])
def test_only_http_is_proxied(world: World, target: str) -> None:
    assert world.ask("GET", target).status == 502


def test_invalid_url_gets_400(world: World) -> None:
    assert world.ask("GET", "http://web:port/").status == 400


def test_dashboard_port_comes_from_the_heads_command_line(world: World) -> None:
    world.ray_pods = [head(start="ray start --head --dashboard-port=9999")]
    assert world.get().status == 502
    assert world.ask("GET", dashboard(port=9999)).status == 200


@pytest.mark.parametrize("option", ["--dashboard-host=127.0.0.1", "--include-dashboard=false"])
def test_dashboard_on_loopback_gets_502(world: World, option: str) -> None:
    world.ray_pods = [head(start=f"ray start --head {option}")]
    assert b"cannot be reached" in world.get().body


def test_head_service_with_a_name_of_its_own_is_found(world: World) -> None:
    world.rayclusters = [raycluster(headGroupSpec={"headService": {"metadata": {"name": "mine"}}})]
    assert world.ask("GET", f"http://mine.models.svc.cluster.local:8265{APPLICATIONS}").status == 200
    assert world.get().status == 502


def test_another_cluster_domain_takes_the_place_of_the_usual_one() -> None:
    world = World(domain="example.org")
    assert world.get().status == 502
    assert world.ask("GET", dashboard().replace("cluster.local", "example.org")).status == 200


# -- health of Serve's proxy -------------------------------------------------------------------------------------------


def test_serve_does_not_listen_before_the_first_put(world: World) -> None:
    assert world.health().status == 502
    world.put()
    assert (world.health().status, world.health().body) == (200, b"success")


def test_serve_is_not_healthy_before_there_is_a_route(world: World) -> None:
    world.put({"applications": [{**CHAT, "route_prefix": None}]})
    assert (world.health().status, world.health().body) == (503, b"Route table is not populated yet.")
    world.put()
    world.put({"applications": []})
    assert world.health().status == 200


def test_serve_listens_where_its_first_configuration_says(world: World) -> None:
    world.put({**CONFIG, "http_options": {"port": 8001}})
    world.put({**CONFIG, "http_options": {"port": 8002}})
    assert [world.health(f"10.0.0.1:{port}").status for port in (8000, 8001, 8002)] == [502, 200, 502]


@pytest.mark.parametrize("unreachable", [{"http_options": {"host": "127.0.0.1"}}, {"proxy_location": "Disabled"}])
def test_serve_proxy_on_loopback_gets_502(world: World, unreachable: dict[str, Any]) -> None:
    world.put({**CONFIG, **unreachable})
    assert world.health().status == 502


def test_serve_answers_nothing_but_its_health(world: World) -> None:
    world.put()
    assert world.ask("GET", "http://10.0.0.1:8000/v1/models").status == 404


# -- memory ------------------------------------------------------------------------------------------------------------


def test_new_head_has_no_configuration(world: World) -> None:
    world.put()
    world.ray_pods = [head("head-2", ip="10.0.0.2"), *workers(2)]
    assert said(world.get())["applications"] == {}
    assert world.health("10.0.0.2:8000").status == 502


def test_head_with_restarted_container_has_no_configuration(world: World) -> None:
    world.put()
    world.ray_pods = [head(restarts=1), *workers(2)]
    assert said(world.get())["applications"] == {}


@pytest.mark.parametrize("how", ["options", "annotation"])
def test_with_gcs_fault_tolerance_a_new_head_remembers(world: World, how: str) -> None:
    cluster = raycluster()
    if how == "options":
        cluster["spec"]["gcsFaultToleranceOptions"] = {"redisAddress": "redis:6379"}
    else:
        cluster["metadata"]["annotations"] = {"ray.io/ft-enabled": "true"}
    world.rayclusters = [cluster]
    world.put()
    world.ray_pods = [head("head-2", ip="10.0.0.2"), *workers(2)]
    assert world.status() == "RUNNING"
    assert world.health("10.0.0.2:8000").status == 200


def test_new_raycluster_of_the_same_name_has_no_configuration(world: World) -> None:
    world.put()
    world.rayclusters = [raycluster(uid="uid-new", gcsFaultToleranceOptions={"redisAddress": "redis:6379"})]
    world.ray_pods = [head("head-2", owner="uid-new")]
    assert said(world.get())["applications"] == {}


def test_two_clusters_of_a_service_are_reported_apart_and_their_puts_stand_in_order(world: World) -> None:
    world.rayclusters.append(raycluster("web-fghij", "uid-new", workerGroupSpecs=[]))
    world.ray_pods.append(head("head-new", ip="10.0.0.2", owner="uid-new"))
    world.put()
    assert said(world.get("web-fghij"))["applications"] == {}
    world.put({"applications": [{**CHAT, "name": "code"}]}, "web-fghij")
    assert (world.status(), world.status("code", "web-fghij")) == ("RUNNING", "RUNNING")
    assert [(put["cluster"], put["head"]) for put in world.puts("web")] == [
        ("web-abcde", "head-1"),
        ("web-fghij", "head-new"),
    ]
    assert [put["body"] for put in world.puts("web-abcde")] == [CONFIG]
    world.put()
    assert [put["cluster"] for put in world.puts("web")] == ["web-abcde", "web-fghij", "web-abcde"]


def test_what_was_put_is_still_reported_when_the_cluster_is_gone(world: World) -> None:
    world.put()
    world.rayclusters = world.ray_pods = []
    assert [put["cluster"] for put in world.puts("web")] == ["web-abcde"]
    assert world.puts("unheard-of") == []


# -- token mode --------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(world: World) -> World:
    world.ray_pods = [head(env=TOKEN_MODE), *workers(2)]
    world.secrets = {"models/web-abcde/auth_token": "s3cret"}
    return world


def test_without_a_token_nothing_is_let_in(guarded: World) -> None:
    answer = guarded.get()
    assert (answer.status, answer.body) == (401, b"Unauthorized: Missing authentication token")
    assert guarded.put().status == 401
    assert guarded.puts()[0]["status"] == 401


@pytest.mark.parametrize("given", ["Bearer wrong", "s3cret", "Bearer s3cret ", "bearer s3cret", "Bearer ключ"])
def test_another_token_is_refused(guarded: World, given: str) -> None:
    answer = guarded.get(x_ray_authorization=given)
    assert (answer.status, answer.body) == (403, b"Forbidden: Invalid authentication token")


@pytest.mark.parametrize("header", ["x_ray_authorization", "authorization"])
def test_token_of_the_head_is_accepted(guarded: World, header: str) -> None:
    assert guarded.put(**{header: "Bearer s3cret"}).status == 200
    assert "chat" in said(guarded.get(**{header: "Bearer s3cret"}))["applications"]


def test_health_needs_no_token(guarded: World) -> None:
    guarded.put(x_ray_authorization="Bearer s3cret")
    assert guarded.health().status == 200


def test_secret_that_changes_reaches_the_next_head_only(guarded: World) -> None:
    guarded.get(x_ray_authorization="Bearer s3cret")
    guarded.secrets = {"models/web-abcde/auth_token": "changed"}
    assert guarded.get(x_ray_authorization="Bearer changed").status == 403
    guarded.ray_pods = [head("head-2", env=TOKEN_MODE)]
    assert guarded.get(x_ray_authorization="Bearer changed").status == 200


def test_head_without_its_secret_gets_502(guarded: World) -> None:
    guarded.secrets = {}
    assert b"the Secret web-abcde has no auth_token" in guarded.get().body
    assert guarded.get().status == 502


def test_without_the_api_server_a_token_that_was_not_read_yet_cannot_be_compared(guarded: World) -> None:
    guarded.secrets = None
    assert b"the API server does not answer" in guarded.get(x_ray_authorization="Bearer s3cret").body


# -- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "of_its_deployments"),
    [("DEPLOY_FAILED", "DEPLOY_FAILED"), ("UNHEALTHY", "UNHEALTHY"), ("DEPLOYING", "UPDATING")],
)
def test_application_fails_as_reported_until_it_is_healed(world: World, status: str, of_its_deployments: str) -> None:
    world.put({"applications": [CHAT, {**CHAT, "name": "code", "route_prefix": "/code"}]})
    world.tell(applications={"chat": status})
    reported = said(world.get())["applications"]
    assert (reported["chat"]["status"], reported["chat"]["deployments"]["Model"]["status"]) == (
        status,
        of_its_deployments,
    )
    assert reported["code"]["status"] == "RUNNING"
    world.heal()
    assert world.status() == "RUNNING"


def test_application_that_only_failed_so_far_has_not_run(world: World) -> None:
    world.tell(applications={"chat": "DEPLOY_FAILED"})
    world.put()
    assert world.status() == "DEPLOY_FAILED"
    world.ray_pods = [head(), *workers(1)]
    world.heal()
    assert world.status() == "DEPLOYING"


def test_application_that_failed_after_it_ran_has_run(world: World) -> None:
    world.put()
    assert world.status() == "RUNNING"
    world.tell(applications={"chat": "UNHEALTHY"})
    assert world.status() == "UNHEALTHY"
    world.ray_pods = [head(), *workers(1)]
    world.heal()
    assert world.status() == "UNHEALTHY"


def test_failing_dashboard_does_not_store_a_put(world: World) -> None:
    world.tell(dashboard=500)
    assert (world.get().status, world.put().status) == (500, 500)
    world.heal()
    assert said(world.get())["applications"] == {}
    assert [(put["status"], put["answer"]) for put in world.puts()] == [(500, "set to fail")]


def test_serve_fails_as_reported(world: World) -> None:
    world.put()
    world.tell(serve=503)
    assert (world.health().status, world.get().status) == (503, 200)
    world.heal()
    assert world.health().status == 200


def test_cluster_is_reported_apart_from_its_service(world: World) -> None:
    world.rayclusters.append(raycluster("web-fghij", "uid-new"))
    world.ray_pods.append(head("head-new", ip="10.0.0.2", owner="uid-new"))
    world.tell("web", dashboard=500)
    world.tell("web-fghij", dashboard=503)
    assert (world.get().status, world.get("web-fghij").status) == (500, 503)
    world.heal("web")
    assert (world.get().status, world.get("web-fghij").status) == (200, 503)


def test_only_the_next_cluster_fails_when_it_is_said_so(world: World) -> None:
    world.put()
    world.tell("web", applications={"chat": "DEPLOY_FAILED"}, only_new=True)
    world.rayclusters.append(raycluster("web-fghij", "uid-new", workerGroupSpecs=[]))
    world.ray_pods.append(head("head-new", ip="10.0.0.2", owner="uid-new"))
    world.put(cluster="web-fghij")
    assert (world.status(), world.status(cluster="web-fghij")) == ("RUNNING", "DEPLOY_FAILED")


def test_failing_application_that_was_not_put_is_not_listed(world: World) -> None:
    world.put()
    world.tell(applications={"code": "DEPLOY_FAILED"})
    assert list(said(world.get())["applications"]) == ["chat"]


@pytest.mark.parametrize(
    "failure", [{"applications": {"chat": "RUNNING"}}, {"dashboard": 200}, {"serve": 9}, {"hangs": True}], ids=str
)
def test_it_can_be_reported_to_fail_but_not_to_pretend(world: World, failure: dict[str, Any]) -> None:
    assert world.tell(**failure).status == 400
    world.put()
    assert (world.status(), world.health().status) == ("RUNNING", 200)


@pytest.mark.parametrize("path", ["/", "/-/stand-in/models", "/-/stand-in/models/web/chat", APPLICATIONS, "/-/healthz"])
def test_paths_of_its_own_are_few(world: World, path: str) -> None:
    assert world.ask("GET", path).status == 404


def test_it_says_what_checks_configurations(world: World) -> None:
    assert json.loads(world.ask("GET", "/-/stand-in").body) == {"ready": True, "checked_by": "shape"}
