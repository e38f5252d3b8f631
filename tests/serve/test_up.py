"""`rayhelm up` and `down` with real Ray and vLLM: one endpoint for all tests, beside another Ray and vLLM."""

import base64
import io
import json
import math
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import wave
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import psutil
import pytest

from rayhelm import processes
from rayhelm.processes.find import list_shared_memory
from rayhelm.processes.mark import has_ended
from rayhelm.run.local.state import EndpointState
from rayhelm.run.standin.idefics3 import IMAGE_TOKENS

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

FLEET = Path(__file__).parent / "fleet.yaml"
RAYHELM = [sys.executable, "-c", "from rayhelm.cli.app import main; main()"]
EMBED = "BAAI/bge-large-en-v1.5"
"""Name of the model for embeddings."""
EMBED_SERVICE = "baai-bge-large-en-v1-5"
"""Name of its service and of its Serve application."""
MODELS = [
    EMBED,
    "Qwen/Qwen3-8B.v1",
    "acme/sales",
    "chat",
    "ears",
    "gpt-4o-mini",
    "legal",
    "rank",
    "see",
    "voice",
    "whisper-1",
]
MESSAGES = [{"role": "user", "content": "Hello"}]


@dataclass(frozen=True)
class Up:
    state: EndpointState
    url: str
    serve_url: str
    dashboard: str
    key: str
    output: str


def rayhelm(*arguments: str, port: int | None = None) -> subprocess.CompletedProcess[str]:
    words = [*RAYHELM, *arguments, *(["--port", str(port)] if port else [])]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=1500)


@pytest.fixture(scope="module")
def foreign_ray() -> Iterator[list[psutil.Process]]:
    """Another Ray on this computer, with its own folder and ports."""
    mark = processes.create_run_id()
    folder = Path(tempfile.mkdtemp(prefix="foreign-", dir="/tmp"))
    taken: set[int] = set()
    options = {
        "port": processes.find_free_port(taken),
        "metrics-export-port": processes.find_free_port(taken),
        "dashboard-agent-listen-port": processes.find_free_port(taken),
        "ray-client-server-port": processes.find_free_port(taken),
        "min-worker-port": 0,
        "max-worker-port": 0,
        "num-cpus": 1,
        "include-dashboard": "false",
        "object-store-memory": 80_000_000,
        "temp-dir": folder,
    }
    words = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--node-ip-address", "127.0.0.1"]
    words += [word for key, value in options.items() for word in (f"--{key}", str(value))]
    env = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    # The mark of another run lets the test stop it.
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=800, env={**env, processes.MARK: mark})
        # Ray starts and ends workers and helpers by itself; these two run as long as the cluster.
        daemons = [process for process in processes.list_members(mark) if name_of(process) in ("gcs_server", "raylet")]
        assert len(daemons) == 2
        yield daemons
    finally:
        processes.stop_run(mark, grace=1)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def foreign_engine() -> Iterator[psutil.Process]:
    """A process with the title of an engine core of vLLM that is not part of the endpoint."""
    code = "import setproctitle, time; setproctitle.setproctitle('VLLM::EngineCore'); time.sleep(3600)"
    process = subprocess.Popen([sys.executable, "-c", code])
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def up(
    tmp_path_factory: pytest.TempPathFactory, foreign_ray: list[psutil.Process], foreign_engine: psutil.Process
) -> Iterator[Up]:
    """Six models. The fork server halves the time of the start; one test starts a model without it."""
    state = EndpointState(tmp_path_factory.mktemp("state"))
    try:
        yield start_up(state, "--share-imports")
    finally:
        processes.stop_run(state.run, grace=1)
        state.clear()


def start_up(state: EndpointState, *options: str) -> Up:
    port = processes.find_free_port(set())
    done = rayhelm("up", str(FLEET), "--state", str(state.folder), *options, port=port)
    assert done.returncode == 0, done.stderr
    endpoint = state.read()
    assert endpoint is not None
    output = done.stdout + done.stderr
    dashboard = f"http://127.0.0.1:{endpoint.dashboard}"
    return Up(state, endpoint.url, endpoint.serve_url, dashboard, find_key(done.stdout), output)


def find_key(text: str) -> str:
    (key,) = set(re.findall(r"\brayhelm-[0-9a-f]{48}\b", text))
    return str(key)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def post(up: Up, path: str, **body: object) -> httpx.Response:
    return httpx.post(f"{up.url}{path}", json=body, headers=bearer(up.key), timeout=120, trust_env=False)


def events(answer: httpx.Response) -> Iterator[str]:
    """Events of a stream. Lines end at line feeds only: random models also generate Unicode line separators."""
    rest = b""
    for piece in answer.iter_bytes():
        *whole, rest = (rest + piece).split(b"\n\n")
        yield from (event.decode().removeprefix("data: ") for event in whole if event)


def name_of(process: psutil.Process) -> str:
    """The name of a process; empty if it has ended."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and not has_ended(process)


def list_servers(state: EndpointState) -> set[psutil.Process]:
    """The processes of the endpoint that run until `down`. Ray starts and ends idle workers and helpers by itself."""
    members = processes.list_members(state.run)
    return {each for each in members if is_engine(each) or name_of(each) in ("gcs_server", "raylet", "haproxy")}


def is_replica(process: psutil.Process, model: str) -> bool:
    """Whether a process is a replica of a model; Ray puts that into its title, before a dot."""
    title = "".join(processes.read_command(process)[:1])
    return title.partition(".")[0] == f"ray::ServeReplica:{model}:LLMServer:{model}"


def is_engine(process: psutil.Process) -> bool:
    return processes.read_command(process)[:1] == ["VLLM::EngineCore"]


def answers(up: Up, model: str = "chat") -> bool:
    """Whether a model answers. While a replica starts, a request can be refused, and can time out."""
    body = {"model": "chat", "prompt": "Once", "max_tokens": 1} if model == "chat" else {"model": model, "input": "one"}
    path = "completions" if model == "chat" else "embeddings"
    try:
        return post(up, f"/v1/{path}", **body).status_code == 200
    except httpx.TransportError:
        return False


def test_up_prints_the_stand_ins_and_a_request(up: Up) -> None:
    assert "chat: a tiny Qwen3ForCausalLM with random weights replaces it" in up.output
    assert "ears: a tiny WhisperForConditionalGeneration with random weights replaces it" in up.output
    assert "voice: a tiny SpeechT5ForTextToSpeech with random weights replaces it" in up.output
    assert f"curl {up.url}/v1/chat/completions -H 'Authorization: Bearer {up.key}'" in up.output


def test_up_reports_another_ray(up: Up) -> None:
    assert "another Ray runs on this computer" in up.output


def test_share_imports_forks_engines_of_the_fork_server(up: Up) -> None:
    engines = list(filter(is_engine, processes.list_members(up.state.run)))
    assert len(engines) == 5  # of six models; text to speech does without vLLM
    # `up` starts again without the fork server when a forked worker dies.
    assert all(map(is_forked, engines)) is ("without --share-imports" not in up.output)


def is_forked(process: psutil.Process) -> bool:
    """Whether a process is a child of the fork server."""
    return processes.read_command(psutil.Process(process.ppid()))[1:3] == ["-m", "rayhelm.run.local.fork_server"]


def test_chat_request_is_answered(up: Up) -> None:
    answer = post(up, "/chat/v1/chat/completions", model="chat", messages=MESSAGES, max_tokens=8)
    assert answer.status_code == 200
    assert answer.json()["usage"]["completion_tokens"] > 0
    assert answer.json()["choices"][0]["message"]["role"] == "assistant"


def test_completion_request_is_answered(up: Up) -> None:
    answer = post(up, "/chat/v1/completions", model="chat", prompt="Once", max_tokens=8, ignore_eos=True)
    assert answer.status_code == 200
    assert answer.json()["usage"] | {"prompt_tokens": 4, "completion_tokens": 8} == answer.json()["usage"]


def read_stream(up: Up, max_tokens: int) -> tuple[list[str], list[float]]:
    """Send one chat request; return the events and the moments at which they arrived, in seconds."""
    body = {"model": "chat", "messages": MESSAGES, "max_tokens": max_tokens, "ignore_eos": True, "stream": True}
    url, headers = f"{up.url}/v1/chat/completions", bearer(up.key)
    with httpx.stream("POST", url, json=body, headers=headers, timeout=600, trust_env=False) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        arrivals = [(event, time.monotonic()) for event in events(answer)]
    return [event for event, _ in arrivals], [moment for _, moment in arrivals]


def test_stream_arrives_in_chunks(up: Up) -> None:
    # On a busy computer a whole stream can wait in the buffers until its reader runs. An answer that is not streamed
    # arrives at once in every attempt.
    for _ in range(20):
        chunks, arrivals = read_stream(up, max_tokens=500)
        assert chunks[-1] == "[DONE]"
        assert json.loads(chunks[-2])["choices"][0]["finish_reason"] == "length"
        assert len(chunks) > 20
        if len({round(moment, 3) for moment in arrivals}) > 5:
            return
    pytest.fail("the events of 20 streams arrived at once each")


def test_models_are_listed(up: Up) -> None:
    answer = httpx.get(f"{up.url}/v1/models", headers=bearer(up.key), trust_env=False, timeout=120)
    assert [model["id"] for model in answer.json()["data"]] == MODELS


def test_adapters_of_a_model_answer_otherwise_than_the_model(up: Up) -> None:
    tokens = []
    for name in ("chat", "legal", "acme/sales", "chat"):
        body = {"prompt": "Once", "max_tokens": 4, "temperature": 0, "return_token_ids": True, "ignore_eos": True}
        answer = post(up, f"/{name}/v1/completions", model=name, **body).json()
        assert answer["model"] == name
        tokens.append((*answer["choices"][0]["token_ids"],))
    assert len({*tokens}) == 3


@pytest.mark.parametrize("alias", ["gpt-4o-mini", "Qwen/Qwen3-8B.v1"])
def test_alias_answers_like_its_model_under_the_name_of_the_model(up: Up, alias: str) -> None:
    body = {"prompt": "Once", "max_tokens": 4, "temperature": 0, "return_token_ids": True, "ignore_eos": True}
    ours, its = (post(up, "/v1/completions", model=name, **body).json() for name in (alias, "chat"))
    assert ours["model"] == its["model"] == "chat"
    assert ours["choices"][0]["token_ids"] == its["choices"][0]["token_ids"]
    chat = post(up, "/v1/chat/completions", model=alias, messages=MESSAGES, max_tokens=8, stream=True)
    assert {json.loads(event)["model"] for event in [*events_of(chat)][:-1]} == {"chat"}
    listed = httpx.get(f"{up.url}/v1/models/{alias}", headers=bearer(up.key), trust_env=False, timeout=120)
    assert (listed.status_code, listed.json()["id"]) == (200, alias)


def events_of(answer: httpx.Response) -> Iterator[str]:
    """Events of a stream that was read."""
    return (event.removeprefix("data: ") for event in answer.text.split("\n\n") if event)


def test_ray_lists_aliases_and_refuses_other_names(up: Up) -> None:
    """The ingress inside Ray, without the gateway."""
    answer = httpx.get(f"{up.serve_url}/chat/v1/models", trust_env=False, timeout=120)
    names = {model["id"] for model in answer.json()["data"]}
    assert names == {"chat", "legal", "acme/sales", "gpt-4o-mini", "Qwen/Qwen3-8B.v1"}
    body = {"model": "gpt-4o", "prompt": "Once", "max_tokens": 1}
    refused = httpx.post(f"{up.serve_url}/chat/v1/completions", json=body, trust_env=False, timeout=120)
    assert refused.status_code == 404


@pytest.mark.parametrize("headers", [{}, bearer("rayhelm-" + 48 * "0"), {"Authorization": "Basic eDp5"}])
def test_requests_without_the_key_are_refused(up: Up, headers: dict[str, str]) -> None:
    for path in ("/v1/models", "/chat/v1/models", "/v1/chat/completions", "/docs"):
        answer = httpx.get(f"{up.url}{path}", headers=headers, trust_env=False, timeout=120)
        assert answer.status_code == 401, path
        assert answer.json()["error"]["code"] == "invalid_api_key"


def test_model_in_the_body_selects_its_service(up: Up) -> None:
    chat = post(up, "/v1/chat/completions", model="chat", messages=MESSAGES, max_tokens=1)
    embed = post(up, "/v1/embeddings", model=EMBED, input="one")
    assert (chat.status_code, embed.status_code) == (200, 200)
    assert chat.headers["x-model-version"] == "stable"


def test_unknown_model_is_not_found(up: Up) -> None:
    assert post(up, "/v1/chat/completions", model="gpt-9", messages=MESSAGES).status_code == 404


def test_key_and_prompts_are_not_stored(up: Up) -> None:
    prompt = "a prompt with unique words"
    assert post(up, "/v1/completions", model="chat", prompt=prompt, max_tokens=1).status_code == 200
    folders = (up.state.folder, up.state.session)
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        content = path.read_bytes()
        assert up.key.encode() not in content, path
        assert prompt.encode() not in content, path
    (keys,) = up.state.gateway.glob("keys/*/keys")
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert stat.S_IMODE(up.state.gateway.stat().st_mode) == 0o700


def test_embedding_request_is_answered(up: Up) -> None:
    answer = post(up, f"/{EMBED}/v1/embeddings", model=EMBED, input=["one", "two"])
    assert answer.status_code == 200
    assert [len(item["embedding"]) for item in answer.json()["data"]] == [128, 128]


def test_image_is_read_in_tiles(up: Up) -> None:
    """A square image has four tiles and itself, a wide one two and itself. vLLM's tower computes each of them."""
    answers = [ask_about(up, encode_image(size)) for size in ((64, 64), (64, 16))]
    assert {answer.status_code for answer in answers} == {200}, answers[0].text
    assert {answer.json()["usage"]["completion_tokens"] for answer in answers} == {8}
    square, wide = (answer.json()["usage"]["prompt_tokens"] for answer in answers)
    text = post(up, "/see/v1/chat/completions", model="see", messages=[{"role": "user", "content": "What?"}])
    assert wide - text.json()["usage"]["prompt_tokens"] >= 3 * IMAGE_TOKENS
    assert square - wide >= 2 * IMAGE_TOKENS


def test_damaged_image_is_a_400(up: Up) -> None:
    answer = ask_about(up, encode_image((64, 64))[:82])
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data", "http://127.0.0.1/a.png"])
def test_image_from_an_address_is_refused_without_a_connection(up: Up, url: str) -> None:
    answer = ask_about(up, url)
    assert answer.status_code == 400
    assert "none.invalid" in answer.json()["error"]["message"]


def test_image_from_a_file_of_the_server_is_not_read(up: Up) -> None:
    """vLLM answers this refusal with 500, not with 400."""
    answer = ask_about(up, f"file://{FLEET}")
    assert answer.status_code == 500
    assert "--allowed-local-media-path" in answer.text
    assert "only its architecture is used" not in answer.text


def ask_about(up: Up, url: str) -> httpx.Response:
    content = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]
    messages = [{"role": "user", "content": content}]
    return post(up, "/see/v1/chat/completions", model="see", messages=messages, max_tokens=8, ignore_eos=True)


def encode_image(size: tuple[int, int]) -> str:
    """Return a red PNG as a `data:` URL."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", size, "red").save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def test_rerank_request_is_answered(up: Up) -> None:
    """Ray Serve LLM has no `/v1/rerank`; a client sorts the scores."""
    answer = post(up, "/rank/v1/score", model="rank", text_1="one", text_2=["one", "two", "three"])
    assert answer.status_code == 200, answer.text
    assert [(found["index"], type(found["score"])) for found in answer.json()["data"]] == [
        (0, float),
        (1, float),
        (2, float),
    ]


@pytest.mark.parametrize("name", ["ears", "whisper-1"], ids=["model", "alias"])
def test_sound_file_is_transcribed(up: Up, name: str) -> None:
    answer = transcribe(up, name)
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json()["text"], str)


def transcribe(up: Up, name: str = "ears") -> httpx.Response:
    return httpx.post(
        f"{up.url}/ears/v1/audio/transcriptions",
        data={"model": name, "language": "en"},
        files={"file": ("second.wav", encode_tone(seconds=1), "audio/wav")},
        headers=bearer(up.key),
        timeout=600,
        trust_env=False,
    )


@pytest.mark.parametrize("path", ["/voice/v1/audio/speech", "/v1/audio/speech"])
def test_text_is_spoken(up: Up, path: str) -> None:
    answer = post(up, path, model="voice", input="hello", response_format="wav")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/wav"
    with wave.open(io.BytesIO(answer.content)) as spoken:
        assert (spoken.getnchannels(), spoken.getsampwidth(), spoken.getframerate()) == (1, 2, 16000)
        assert spoken.getnframes() * 2 == len(spoken.readframes(spoken.getnframes())) > 0


def test_speech_arrives_sentence_by_sentence(up: Up) -> None:
    body = {"model": "voice", "input": "The first sentence. " * 32, "response_format": "pcm"}
    arrivals: list[float] = []
    with httpx.stream(
        "POST", f"{up.url}/v1/audio/speech", json=body, headers=bearer(up.key), timeout=600, trust_env=False
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "audio/pcm;rate=24000"
        arrivals += [time.monotonic() for _ in answer.iter_raw()]
    # The model computes for tens of milliseconds between two sentences, however busy the computer is.
    assert len({round(moment, 2) for moment in arrivals}) >= 4


def test_refused_speech_has_a_message_in_the_structure_of_openai(up: Up) -> None:
    answer = post(up, "/v1/audio/speech", model="voice", input="hello", voice="alloy")
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "voice")
    assert error["message"] == "the voice `alloy` does not exist; there are default"


def test_speech_without_the_key_is_refused(up: Up) -> None:
    body = {"model": "voice", "input": "hello"}
    answer = httpx.post(f"{up.url}/voice/v1/audio/speech", json=body, trust_env=False, timeout=120)
    assert answer.status_code == 401


def test_edit_of_one_application_loses_no_request_of_the_others(up: Up) -> None:
    """An edit of the Serve config, as a KubeRay operator applies it: only the replicas of that application restart."""
    requests: dict[str, Callable[[], httpx.Response]] = {
        "chat": lambda: post(up, "/chat/v1/chat/completions", model="chat", messages=MESSAGES, max_tokens=4),
        "ears": lambda: transcribe(up),
        "rank": lambda: post(up, "/rank/v1/score", model="rank", text_1="one", text_2="two"),
        "voice": lambda: post(up, "/voice/v1/audio/speech", model="voice", input="hello"),
    }
    sent: dict[str, list[str]] = {name: [] for name in requests}
    finished = Event()

    def send(name: str) -> None:
        while not finished.is_set():
            try:
                sent[name].append(str(requests[name]().status_code))
            except httpx.HTTPError as error:
                sent[name].append(repr(error))

    before = {name: list_replicas(up, name) for name in (EMBED_SERVICE, *requests)}
    clients = [Thread(target=send, args=(name,)) for name in requests]
    for client in clients:
        client.start()
    try:
        edit_engine(up, EMBED_SERVICE, max_num_seqs=3)
        processes.wait_until(
            lambda: (
                (is_replaced(list_replicas(up, EMBED_SERVICE), before[EMBED_SERVICE]) and answers(up, EMBED)) or None
            ),
            what="the edited application",
            timeout=900,
        )
        during = {name: len(answers) for name, answers in sent.items()}
        processes.wait_until(
            lambda: all(len(sent[name]) > during[name] for name in sent) or None, what="one more of each", timeout=300
        )
    finally:
        finished.set()
        for client in clients:
            client.join()
    assert {name: set(found) for name, found in sent.items()} == {name: {"200"} for name in requests}
    assert {name: list_replicas(up, name) for name in requests} == {name: before[name] for name in requests}


def is_replaced(replicas: set[tuple[str, int]], before: set[tuple[str, int]]) -> bool:
    return len(replicas) == len(before) and replicas.isdisjoint(before)


def edit_engine(up: Up, application: str, **arguments: int) -> None:
    """Change engine arguments of an application in the Serve config that runs."""
    configs = {name: found["deployed_app_config"] for name, found in list_applications(up).items()}
    for llm in configs[application]["args"]["llm_configs"]:
        assert arguments.items().isdisjoint(llm["engine_kwargs"].items())
        llm["engine_kwargs"] |= arguments
    config, headers = {"applications": [*configs.values()]}, bearer(up.state.token.read_text())
    url = f"{up.dashboard}/api/serve/applications/"
    httpx.put(url, json=config, headers=headers, trust_env=False, timeout=120).raise_for_status()


def list_replicas(up: Up, application: str) -> set[tuple[str, int]]:
    """The replicas of an application that run, each with its process."""
    return {
        (replica["replica_id"], replica["pid"])
        for deployment in list_applications(up)[application]["deployments"].values()
        for replica in deployment["replicas"]
        if replica["state"] == "RUNNING"
    }


def list_applications(up: Up) -> dict[str, Any]:
    """The applications as Serve's API describes them. While Serve replaces replicas this API can answer 500."""
    url, headers = f"{up.dashboard}/api/serve/applications/", bearer(up.state.token.read_text())

    def ask() -> dict[str, Any] | None:
        answer = httpx.get(url, headers=headers, trust_env=False, timeout=120)
        return answer.json()["applications"] if answer.is_success else None

    return processes.wait_until(ask, what="an answer of Ray's API", timeout=120)


def encode_tone(seconds: int, rate: int = 16000) -> bytes:
    """Return a WAV file with a tone of 440 Hz."""
    tone = (math.sin(2 * math.pi * 440 * number / rate) for number in range(seconds * rate))
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(array("h", (round(8000 * height) for height in tone)).tobytes())
    return buffer.getvalue()


def test_bench_measures_the_endpoint_through_the_gateway(up: Up, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(f"{up.key}\n")
    tokenizer = next(path.parent for path in up.state.stand_ins.rglob("tokenizer.json"))
    words = ["--url", up.url, "--model", "chat", "--key-file", str(key), "--tokenizer", str(tokenizer)]
    load = ["--concurrency", "2", "--requests", "8", "--input-tokens", "32", "--output-tokens", "8"]
    done = rayhelm("bench", str(FLEET), *words, *load, "--replicas", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["loads"]
    assert (found["requests"], found["errors"], found["output_tokens"]) == (8, {}, 8)
    assert found["input_tokens"] >= 32
    assert 0 < found["tpot_s"] <= found["tpot_p90_s"]
    assert 0 < found["ttft_s"] <= found["ttft_p90_s"]
    assert found["expected"]["tpot_s"]["low"] < found["expected"]["tpot_s"]["high"]


def test_api_of_ray_requires_the_token(up: Up) -> None:
    url = f"{up.dashboard}/api/serve/applications/"
    token = up.state.token.read_text()
    assert httpx.get(url, trust_env=False, timeout=120).status_code == 401
    wrong = httpx.get(url, headers=bearer(f"{token[:-1]}x"), trust_env=False, timeout=120)
    assert wrong.status_code in (401, 403)
    answer = httpx.get(url, headers=bearer(token), trust_env=False, timeout=120)
    # Rules of Prometheus know the ingress by this name, with adapters too.
    assert {*answer.json()["applications"]["chat"]["deployments"]} == {"LLMServer:chat", "OpenAiIngress"}


def test_http_ports_listen_on_loopback(up: Up) -> None:
    ports = {int(url.rpartition(":")[2]) for url in (up.url, up.serve_url, up.dashboard)}
    addresses = {
        connection.laddr.ip
        for connection in psutil.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port in ports
    }
    assert addresses == {"127.0.0.1"}


def test_second_up_changes_nothing_and_prints_another_key(up: Up) -> None:
    before = list_servers(up.state)
    assert before
    again = rayhelm("up", str(FLEET), "--state", str(up.state.folder), port=int(up.url.rpartition(":")[2]))
    assert again.returncode == 0, again.stderr
    assert f"curl {up.url}" in again.stdout
    assert list_servers(up.state) == before
    other = find_key(again.stdout)
    assert other != up.key
    for key in (up.key, other):
        assert httpx.get(f"{up.url}/v1/models", headers=bearer(key), trust_env=False, timeout=120).status_code == 200


def test_up_on_another_port_names_the_running_endpoint(up: Up) -> None:
    before = list_servers(up.state)
    assert before
    again = rayhelm("up", str(FLEET), "--state", str(up.state.folder), port=processes.find_free_port(set()))
    assert again.returncode == 1
    assert up.url in again.stderr
    assert "rayhelm down" in again.stderr
    assert list_servers(up.state) == before


def test_used_port_is_refused_and_stops_nothing(up: Up, tmp_path: Path) -> None:
    port = int(up.url.rpartition(":")[2])
    other = rayhelm("up", str(FLEET), "--state", str(tmp_path), port=port)
    assert other.returncode == 1
    assert f"port {port} is in use by" in other.stderr
    assert "Traceback" not in other.stderr
    assert processes.list_members(EndpointState(tmp_path).run) == []
    assert post(up, "/chat/v1/completions", model="chat", prompt="Once", max_tokens=1).status_code == 200


def test_interrupted_stream_ends_with_an_error_and_serve_recovers(up: Up) -> None:
    # On a busy computer, a tiny model may finish before the first chunk arrives; then the kill is too late.
    for _ in range(10):
        last = last_of_a_stream_that_loses_its_replica(up)
        processes.wait_until(lambda: answers(up) or None, what="another replica", timeout=1500)
        if last != "[DONE]":
            break
    assert "replica" in json.loads(last)["error"]["message"]


def last_of_a_stream_that_loses_its_replica(up: Up) -> str:
    body = {"model": "chat", "messages": MESSAGES, "max_tokens": 4000, "ignore_eos": True, "stream": True}
    (replica,) = (process for process in processes.list_members(up.state.run) if is_replica(process, "chat"))
    url, headers = f"{up.url}/v1/chat/completions", bearer(up.key)
    with httpx.stream("POST", url, json=body, headers=headers, timeout=300, trust_env=False) as answer:
        stream = events(answer)
        assert json.loads(next(stream))["choices"]
        replica.kill()
        *_, last = stream
        return last


def test_down_stops_only_the_endpoint(
    up: Up, foreign_ray: list[psutil.Process], foreign_engine: psutil.Process
) -> None:
    ours = processes.list_members(up.state.run)
    assert any(map(is_engine, ours))
    assert {"raylet", "haproxy"} <= {name_of(process) for process in ours}
    shared = list_shared_memory(ours)
    assert shared
    done = rayhelm("down", "--state", str(up.state.folder))
    assert done.returncode == 0
    assert done.stdout.startswith("stopped ")
    assert [process for process in ours if is_alive(process)] == []
    assert is_alive(foreign_engine)
    assert [process for process in foreign_ray if not is_alive(process)] == []
    assert not up.state.session.exists()
    assert not up.state.gateway.exists()
    assert [block for block in shared if block.exists()] == []
    assert rayhelm("down", "--state", str(up.state.folder)).stdout == "no process of `rayhelm up` is running\n"


def test_down_needs_neither_state_nor_head(up: Up) -> None:
    """After a crash: no head, no state, and an engine without a living parent."""
    code = "import setproctitle, time; setproctitle.setproctitle('VLLM::EngineCore'); time.sleep(3600)"
    head = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True)"
    processes.start([sys.executable, "-c", head], run=up.state.run, log=up.state.folder / "head.log")
    processes.wait_until(
        lambda: [is_engine(process) for process in processes.list_members(up.state.run)] == [True] or None,
        what="the engine without its head",
        timeout=300,
    )
    assert rayhelm("down", "--state", str(up.state.folder)).stdout == "stopped 1 processes\n"
    assert processes.list_members(up.state.run) == []


def test_up_without_share_imports_starts_no_fork_server(tmp_path: Path) -> None:
    state = EndpointState(tmp_path)
    try:
        up = start_up(state, "--service", EMBED_SERVICE)
        assert answers(up, EMBED)
        (engine,) = filter(is_engine, processes.list_members(state.run))
        assert not is_forked(engine)
    finally:
        assert rayhelm("down", "--state", str(tmp_path)).returncode == 0
    assert processes.list_members(state.run) == []
