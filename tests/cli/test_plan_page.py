"""`rayhelm plan --page` and `--open`: the plan in a browser."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import httpx
import pytest

from rayhelm.cli.plan_page import PlanServer
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.fleet.load import load_fleet
from shared.command import Answer, run

FLEET = """
fleet: shown
clusters: {main: {gpuFeatureDiscovery: true}}
pools:
  main: {gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: ethernet-100g, price: 3 USD/h}
models:
  chat:
    source: Qwen/Qwen3-32B
    context: 8192
    traffic: {requestsPerSecond: 3, inputTokens: 1000, outputTokens: 200}
"""
Page = Callable[..., httpx.Response]


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    return file


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    return lambda *words: run(capsys, monkeypatch, "plan", *map(str, words))


@pytest.fixture
def page(fleet: Path) -> Iterator[Page]:
    with PlanServer(load_fleet(fleet)) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield lambda path="/", headers=None, **query: http.get(
            path, params={name.replace("_", "."): value for name, value in query.items()}, headers=headers
        )
        server.shutdown()
        thread.join()


def test_page_has_plan_map_and_a_field_for_each_change(page: Page) -> None:
    text = page().raise_for_status().text
    assert "<svg" in text
    assert "tensor_parallel_size" in text
    for name in ("chat.traffic", "chat.ttft", "chat.tpot", "main.nodes", "main.gpu", "main.price"):
        assert f'name="{name}"' in text


def test_changed_field_shows_both_plans_and_stays_in_the_form(page: Page) -> None:
    text = page(chat_traffic="8x", main_price="").raise_for_status().text
    assert '<span class="before">' in text
    assert 'value="8x"' in text
    assert "<code>chat.traffic=8x</code>" in text


def test_change_without_room_names_the_missing_nodes(page: Page) -> None:
    text = page(chat_traffic="900x").raise_for_status().text
    assert "pool `main` lacks" in text
    assert 'role="alert"' not in text


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"chat_source": "deepseek-ai/DeepSeek-R1", "main_nodes": "1"}, "model `chat`"),
        ({"chat_ttft": "2"}, "a duration with its unit"),
        ({"main_gpu": "H1000"}, "H1000"),
        ({"chat_traffic": "<script>"}, "a factor from above 0x"),
        ({"other_traffic": "2x"}, "no model is called `other`"),
    ],
)
def test_change_without_a_plan_says_why_and_keeps_the_plan(page: Page, query: dict[str, str], why: str) -> None:
    text = page(**query).raise_for_status().text
    assert 'role="alert"' in text
    assert why in text
    assert "<script" not in text
    assert "Qwen" in text or "H100-SXM-80GB" in text


def test_page_may_load_nothing_from_elsewhere(page: Page) -> None:
    answer = page()
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "src=" not in answer.text


def test_page_of_another_host_name_is_refused(page: Page) -> None:
    assert page(headers={"Host": "other.example"}).status_code == 403
    assert page("/other").status_code == 404


def test_file_has_the_plan_without_a_form(plan: Callable[..., Answer], fleet: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    assert plan(fleet, "--page", file).out == f"written  {file}\n"
    assert "<form" not in file.read_text()
    assert plan(fleet, "--page", file, "--what-if", "traffic=8x").code == 0
    assert "<code>traffic=8x</code>" in file.read_text()


@pytest.mark.parametrize(
    "options",
    [
        ("--page", "p.html", "--format", "json"),
        ("--page", "p.html", "--alternatives"),
        ("--open", "--what-if", "traffic=2x"),
    ],
)
def test_option_without_effect_on_a_page_is_refused(
    plan: Callable[..., Answer], fleet: Path, options: tuple[str, ...]
) -> None:
    answer = plan(fleet, *options)
    assert answer.code == 2
    assert "leave" in answer.err + answer.out


def test_file_that_cannot_be_written_is_reported(plan: Callable[..., Answer], fleet: Path, tmp_path: Path) -> None:
    answer = plan(fleet, "--page", tmp_path)
    assert answer.code
    assert "cannot be written: Is a directory" in answer.err


@pytest.mark.parametrize("name", ["shared-gpus", "three-tiers", "homelab", "prefill-decode"])
def test_page_of_a_reference_fleet_has_all_its_models(plan: Callable[..., Answer], name: str, tmp_path: Path) -> None:
    source = charts_dir().parent / "values" / name / "fleet.yaml"
    assert plan(source, "--page", tmp_path / "plan.html").code == 0
    text = (tmp_path / "plan.html").read_text()
    assert all(f'<th scope="row">{model}</th>' in text for model in load_fleet(source).fleet.models)


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_page_is_written_into_an_open_file_of_the_shell(
    plan: Callable[..., Answer], fleet: Path, tmp_path: Path, folder: str
) -> None:
    """Bash gives `--page >(less)` the name /dev/fd/63, which is a link."""
    with (tmp_path / "page.html").open("w") as page:
        answer = plan(fleet, "--page", f"{folder}/{page.fileno()}")
    assert answer.code == 0, answer.err
    assert "</html>" in (tmp_path / "page.html").read_text()
