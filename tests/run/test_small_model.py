"""The small model of a hub: its name, its download from a mirror of the test, and its values."""

import json
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from huggingface_hub import constants

from pods.kit.hub import Handler
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.engine import Engine
from rayhelm.deploy.values.ray_service.serve import ModelAutoscaling, Serve, ServeApplication, ServedModel
from rayhelm.errors import UsageError
from rayhelm.run.standin.model import make_stand_in
from rayhelm.run.standin.small_model import CACHE_BYTES, CONTEXT, Downloaded, SmallModel, fetch, parse_small_model
from shared.ports import reserve_port

MODEL = SmallModel(id="tiny/instruct", revision="1" * 40)
SMALL = Downloaded(MODEL, Path("/small"))
get = Handler.do_GET


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy, a token or the mode without a network."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """URL of a mirror, and the folder that it gives out under any name and revision."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text("not needed")
    handler = type("OfThisTest", (Handler,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


def test_default_is_pinned_and_has_a_license_and_a_size() -> None:
    model = parse_small_model("default")
    assert str(model) == "HuggingFaceTB/SmolLM2-135M-Instruct@12fd25f77366 (Apache-2.0, 271 MB)"
    assert len(model.revision) == 40


def test_model_of_the_user_is_read_with_its_revision() -> None:
    assert parse_small_model(f"tiny/instruct@{'1' * 40}") == MODEL


@pytest.mark.parametrize("text", ["tiny/instruct", "tiny/instruct@main", "instruct@" + "1" * 40, "../x/y@" + "1" * 40])
def test_model_without_a_commit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"write `default`, or ID@REVISION with the 40 digits of a commit"):
        parse_small_model(text)


def test_model_is_downloaded_once_from_the_mirror(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, repository = mirror
    found = fetch(MODEL, url, tmp_path / "cache")
    assert isinstance(found, Downloaded)
    assert (found.folder / "model.safetensors").read_bytes() == b"weights"
    assert not (found.folder / "README.md").exists()
    (repository / "model.safetensors").unlink()
    assert fetch(MODEL, "http://127.0.0.1:1", tmp_path / "cache") == found


def test_hub_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with reserve_port() as port:
        url = f"http://127.0.0.1:{port}"
        reason = fetch(MODEL, url, tmp_path / "cache")
    assert isinstance(reason, str)
    assert reason.startswith(f"{url}/tiny/instruct/resolve/{'1' * 40}/config.json does not answer: ")


def test_hub_without_the_model_is_named(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, repository = mirror
    (repository / "config.json").unlink()
    reason = fetch(MODEL, url, tmp_path / "cache")
    assert reason == f"{url}/tiny/instruct/resolve/{'1' * 40}/config.json answers 404"


def test_hub_without_weights_is_named(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, repository = mirror
    (repository / "model.safetensors").unlink()
    assert fetch(MODEL, url, tmp_path / "cache") == f"{url} has no weights of it"


@pytest.mark.parametrize("part", ["/tree/", "model.safetensors"])
def test_failed_download_is_reported_and_continued(
    part: str, mirror: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = mirror
    with monkeypatch.context() as patch:
        patch.setattr(Handler, "do_GET", lambda self: self.send_error(403) if part in self.path else get(self))
        reason = fetch(MODEL, url, tmp_path / "cache")
    assert isinstance(reason, str)
    assert reason.startswith("the download failed, and the next start continues it: ")
    found = fetch(MODEL, url, tmp_path / "cache")
    assert isinstance(found, Downloaded)
    assert (found.folder / "model.safetensors").read_bytes() == b"weights"


@pytest.mark.parametrize("missing", ["tokenizer_config.json", "model-00002-of-00002.safetensors"])
def test_interrupted_download_is_continued(missing: str, mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, repository = mirror
    parts = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    (repository / "model.safetensors").unlink()
    (repository / "model.safetensors.index.json").write_text(json.dumps({"weight_map": dict(enumerate(parts))}))
    for part in parts:
        (repository / part).write_bytes(b"weights")
    found = fetch(MODEL, url, tmp_path / "cache")
    assert isinstance(found, Downloaded)
    (found.folder / missing).unlink()
    assert isinstance(fetch(MODEL, "http://127.0.0.1:1", tmp_path / "cache"), str)
    assert fetch(MODEL, url, tmp_path / "cache") == found
    assert (found.folder / missing).exists()


def test_token_goes_to_the_hub(mirror: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def guard(reply: Callable[[Handler], None]) -> Callable[[Handler], None]:
        def answer(handler: Handler) -> None:
            if handler.headers["Authorization"] == "Bearer hf_test":
                reply(handler)
            else:
                handler.send_error(401)

        return answer

    monkeypatch.setattr(Handler, "do_GET", guard(Handler.do_GET))
    monkeypatch.setattr(Handler, "do_HEAD", guard(Handler.do_HEAD))
    url, _ = mirror
    assert fetch(MODEL, url, tmp_path / "cache") == f"{url}/tiny/instruct/resolve/{'1' * 40}/config.json answers 401"
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    assert isinstance(fetch(MODEL, url, tmp_path / "cache"), Downloaded)


def values(**changes: object) -> RayServiceValues:
    model = {
        "source": "a/b",
        "engine": Engine(max_model_len=131072, max_num_seqs=256, max_num_batched_tokens=8192),
        "autoscaling": ModelAutoscaling(target_ongoing_requests=48),
    }
    served = ServedModel.model_validate({**model, **changes})
    return RayServiceValues(serve=Serve(applications={"chat": ServeApplication(models={"chat": served})}))


def test_chat_model_becomes_the_small_one_with_its_own_name() -> None:
    result = make_stand_in(values(aliases=["gpt"]), {"chat": "LlamaForCausalLM"}, Path("/tiny"), SMALL)
    small = result.values.serve.applications["chat"].models["chat"]
    assert (small.source, small.aliases, small.accelerator.kind) == ("/small", ["gpt"], "cpu")
    assert (small.engine.max_model_len, small.engine.max_num_seqs, small.engine.load_format) == (CONTEXT, 8, None)
    assert small.engine.extra == {"kv_cache_memory_bytes": CACHE_BYTES}
    assert result.families == frozenset()
    assert result.notes == ("chat: tiny/instruct@111111111111 replaces it; answers are those of a small model",)


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        ("BertModel", {"task": "embed"}),
        ("LlamaForCausalLM", {"lora": {"slots": 1, "max_rank": 8, "adapters": {"legal": {"source": "/legal"}}}}),
    ],
)
def test_model_that_needs_its_family_keeps_random_weights(architecture: str, changes: dict[str, object]) -> None:
    result = make_stand_in(values(**changes), {"chat": architecture}, Path("/tiny"), SMALL)
    assert result.values.serve.applications["chat"].models["chat"].source == f"/tiny/{architecture}"
