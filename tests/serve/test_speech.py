"""Text to speech: the application of our own, with a tiny SpeechT5 of random weights."""

import io
import os
import subprocess
import sys
import wave
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy
import pytest

from rayhelm.run.standin.checkpoint import write_checkpoint

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

    from rayhelm.runtime.speech.engine import SpeechEngine

pytestmark = pytest.mark.serve

RATE = 16000
FORMATS = {
    "mp3": ("audio/mpeg", "mp3", RATE),
    "opus": ("audio/ogg", "opus", 48000),
    "aac": ("audio/aac", "aac", RATE),
    "flac": ("audio/flac", "flac", RATE),
    "wav": ("audio/wav", "pcm_s16le", RATE),
}
"""Content type, codec and samples per second of each format that has a header."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> "SpeechEngine":
    """A checkpoint with one voice, as the application loads it."""
    from rayhelm.runtime.speech.models import load_engine

    folder = write_checkpoint("SpeechT5ForTextToSpeech", tmp_path_factory.mktemp("models"))
    (folder / "voices").mkdir()
    numpy.save(folder / "voices" / "anna.npy", numpy.ones(512, dtype="float32"))
    return load_engine(str(folder), vocoder=str(folder / "vocoder"), load_format="dummy")


@pytest.fixture(scope="module")
def client(engine: "SpeechEngine") -> "TestClient":
    """The HTTP API in this process, without Ray."""
    from fastapi.testclient import TestClient

    from rayhelm.runtime.speech.application import answer_speech, build_api
    from rayhelm.runtime.speech.request import SpeechRequest

    api, lock = build_api(), Lock()

    @api.post("/v1/audio/speech")
    def speech(request: SpeechRequest) -> Any:
        return answer_speech(request, "tts", engine, lock)

    return TestClient(api, raise_server_exceptions=False)


def ask(client: "TestClient", **body: object) -> Any:
    return client.post("/v1/audio/speech", json={"model": "tts", "input": "hello.", **body})


def decode(content: bytes) -> tuple[str, int, int]:
    """Codec, samples per second and samples per channel, as FFmpeg reads them."""
    import av

    with av.open(io.BytesIO(content)) as container:
        (stream,) = container.streams.audio
        samples = sum(frame.samples for frame in container.decode(stream))
        return stream.codec_context.name, stream.rate, samples


@pytest.mark.parametrize("voice", ["default", "anna", {"id": "anna"}])
def test_speech_is_a_wav_with_the_rate_and_length_of_the_model(client: "TestClient", voice: object) -> None:
    answer = ask(client, voice=voice, response_format="wav")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/wav")
    with wave.open(io.BytesIO(answer.content)) as spoken:
        assert (spoken.getnchannels(), spoken.getsampwidth(), spoken.getframerate()) == (1, 2, RATE)
        samples = numpy.frombuffer(spoken.readframes(spoken.getnframes()), dtype="<i2")
    assert len(samples) > RATE // 10
    assert numpy.abs(samples).max() > 100


def test_voices_sound_different(client: "TestClient") -> None:
    one, two = (ask(client, voice=voice, response_format="wav").content for voice in ("default", "anna"))
    assert one != two
    assert ask(client, voice="anna", response_format="wav").content == two


@pytest.mark.parametrize("text", ["One sentence.", "The first sentence. The second one. And a third."])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_speech_is_decoded_by_ffmpeg_in_each_format(client: "TestClient", name: str, text: str) -> None:
    answer = ask(client, response_format=name, input=text)
    media_type, codec, rate = FORMATS[name]
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    found, found_rate, samples = decode(answer.content)
    assert (found.removesuffix("float"), found_rate) == (codec, rate)
    whole = len(ask(client, response_format="pcm", input=text).content) / 2 / 24000
    assert samples / rate == pytest.approx(whole, abs=0.15)


def test_default_format_is_mp3(client: "TestClient") -> None:
    assert ask(client).headers["content-type"] == "audio/mpeg"


@pytest.mark.parametrize("speed", [0.25, 0.5, 2, 4])
def test_speed_changes_the_length(client: "TestClient", speed: float) -> None:
    text = "a sentence that is long enough for four times the speed."
    usual, changed = (len(ask(client, input=text, response_format="pcm", speed=value).content) for value in (1, speed))
    assert changed == pytest.approx(usual / speed, rel=0.1)


def test_sentences_are_encoded_before_the_next_one_is_made(engine: "SpeechEngine") -> None:
    from rayhelm.runtime.speech.encoding import encode

    made: list[str] = []

    def speak() -> Any:
        for text in ("one.", "two.", "three."):
            made.append(text)
            yield engine.speak(text, "default")

    chunks = encode(speak(), engine.rate, "pcm")
    assert next(chunks)
    assert made == ["one."]
    assert next(chunks)
    assert made == ["one.", "two."]


@pytest.mark.parametrize(
    ("text", "limit", "least", "pieces"),
    [
        ("One. Two! Three?", 100, 1, ["One.", "Two!", "Three?"]),
        ("Ask Dr. Who and J. Doe. Then Mrs. Doe.", 100, 1, ["Ask Dr. Who and J. Doe.", "Then Mrs. Doe."]),
        ("one\ntwo\n\nthree", 100, 1, ["one", "two", "three"]),
        ("One. Two. Three.", 100, 8, ["One. Two.", "Three."]),
        ("one two three four", 9, 1, ["one two", "three", "four"]),
        ("abcdefgh ij", 3, 1, ["abc", "def", "gh", "ij"]),
        (" \n\t ", 100, 1, []),
    ],
)
def test_text_is_split_into_sentences_and_words(text: str, limit: int, least: int, pieces: list[str]) -> None:
    from rayhelm.runtime.speech.text import split_text

    assert split_text(text, limit, least=least) == pieces


def test_numbers_are_spelled_out_and_pieces_fit_the_model(engine: "SpeechEngine") -> None:
    assert engine.split("42 men.") == ["forty two men."]
    assert max(map(len, engine.split("word " * 800))) <= 598


@pytest.mark.parametrize(
    ("body", "status", "param", "text"),
    [
        ({"voice": "berta"}, 400, "voice", "the voice `berta` does not exist; there are default, anna"),
        ({"model": "llm"}, 404, "model", "the model `llm` does not exist; this endpoint serves `tts`"),
        ({"input": " "}, 400, "input", "the input has no words"),
        ({"input": "a" * 4097}, 400, "input", "at most 4096 characters"),
        ({"input": ""}, 400, "input", "at least 1 character"),
        ({"speed": 5}, 400, "speed", "less than or equal to 4"),
        ({"response_format": "wma"}, 400, "response_format", "'mp3'"),
        ({"stream_format": "sse"}, 400, "stream_format", "'audio'"),
        ({"instructions": "whisper"}, 400, "instructions", "Extra inputs are not permitted"),
    ],
)
def test_wrong_request_is_refused_as_openai_does(
    client: "TestClient", body: dict[str, object], status: int, param: str, text: str
) -> None:
    answer = ask(client, **body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert text in error["message"]
    assert error["code"] == ("model_not_found" if status == 404 else None)


def test_unknown_path_is_refused_as_openai_does(client: "TestClient") -> None:
    answer = client.get("/v1/audio/translations")
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")


def test_crash_of_the_model_is_a_500_without_the_text_of_the_client(engine: "SpeechEngine") -> None:
    from fastapi.testclient import TestClient

    from rayhelm.runtime.speech.application import answer_speech, build_api
    from rayhelm.runtime.speech.request import SpeechRequest

    class Broken:
        rate, voices, split = engine.rate, engine.voices, engine.split

        def speak(self, piece: str, voice: str) -> Any:
            raise RuntimeError(f"cannot speak {piece}")

    api = build_api()

    @api.post("/v1/audio/speech")
    def speech(request: SpeechRequest) -> Any:
        return answer_speech(request, "tts", Broken(), Lock())

    for text in ("secret.", "secret. And more."):
        answer = ask(TestClient(api, raise_server_exceptions=False), input=text)
        assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")
        assert "secret" not in answer.text


@pytest.fixture(scope="module")
def dia(tmp_path_factory: pytest.TempPathFactory, client: "TestClient") -> "SpeechEngine":
    """A tiny Dia with the recording of one voice."""
    from rayhelm.runtime.speech.models import load_engine

    folder = write_checkpoint("DiaForConditionalGeneration", tmp_path_factory.mktemp("dia"))
    (folder / "voices").mkdir()
    (folder / "voices" / "anna.wav").write_bytes(ask(client, response_format="wav").content)
    (folder / "voices" / "anna.txt").write_text("hello.\n")
    return load_engine(str(folder), codec=str(folder / "codec"), load_format="dummy")


@pytest.mark.parametrize("voice", ["default", "anna"])
def test_dia_speaks_the_same_text_in_the_same_way(dia: "SpeechEngine", voice: str) -> None:
    first, again = (dia.speak("Hello there.", voice) for _ in range(2))
    assert dia.voices == ("default", "anna")
    assert first.ndim == 1
    assert RATE // 10 < len(first) < 2 * RATE  # only what is new, without the recording
    assert numpy.array_equal(first, again)


def test_dia_joins_short_sentences(dia: "SpeechEngine") -> None:
    assert len(dia.split("Hello there. " * 8)) == 1
    assert all(len(piece) <= 400 for piece in dia.split("Hello there. " * 100))


def test_recording_without_its_text_is_refused(dia: "SpeechEngine", tmp_path: Path) -> None:
    from rayhelm.runtime.speech.models import load_engine

    folder = write_checkpoint("DiaForConditionalGeneration", tmp_path)
    (folder / "voices").mkdir()
    (folder / "voices" / "otto.wav").write_bytes(b"")
    with pytest.raises(ValueError, match=r"otto.txt is missing: write what otto.wav says"):
        load_engine(str(folder), codec=str(folder / "codec"), load_format="dummy")


def test_model_without_an_engine_is_refused(tmp_path: Path) -> None:
    from rayhelm.runtime.speech.models import load_engine

    folder = write_checkpoint("LlamaForCausalLM", tmp_path)
    with pytest.raises(ValueError, match="is a model of type `llama`; text to speech runs dia, speecht5"):
        load_engine(str(folder))


def test_model_of_the_hub_is_found_at_its_revision(tmp_path: Path) -> None:
    """In the cache of the hub, as on a computer that downloaded it before."""
    revision = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "models--acme--tts" / "snapshots" / revision
    snapshot.mkdir(parents=True)
    code = f"from rayhelm.runtime.speech.engine import find_folder; print(find_folder('acme/tts@{revision}'))"
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == str(snapshot)
