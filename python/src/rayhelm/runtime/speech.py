"""Text to speech as a Serve application, with OpenAI's `POST /v1/audio/speech`. vLLM's server has no such task.

It runs SpeechT5 checkpoints of transformers with their vocoder. Voices are speaker embeddings: `voices/NAME.npy` in the
model's folder, or a neutral one if there are none. The serving image has to contain this module.
"""

import io
import wave
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy
from fastapi import FastAPI, HTTPException
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from ray import serve
from ray.serve import Application

__all__ = ["SpeechRequest", "Voice", "answer_speech", "build_app", "encode_wav"]

MAX_INPUT = 4096
"""Largest number of characters of a request, as in OpenAI's API."""

Samples = numpy.ndarray[Any, numpy.dtype[numpy.float32]]


class SpeechRequest(BaseModel):
    """OpenAI's request body. `speed` and compressed formats are not supported, so they are refused."""

    model_config = ConfigDict(extra="forbid")

    model: str
    input: str = Field(min_length=1, max_length=MAX_INPUT)
    voice: str = "default"
    response_format: Literal["wav", "pcm"] = "wav"


class Voice(Protocol):
    """A text-to-speech engine."""

    rate: int
    """Samples per second."""

    def speak(self, text: str, voice: str) -> Samples:
        """Return samples between -1 and 1. Raises KeyError for an unknown voice."""


class SpeechT5:
    """A SpeechT5 checkpoint with its vocoder, on a GPU if there is one."""

    def __init__(self, source: str, vocoder: str) -> None:
        import torch
        from transformers import SpeechT5ForTextToSpeech, SpeechT5HifiGan, SpeechT5Processor

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._torch = torch
        self._processor = SpeechT5Processor.from_pretrained(source)
        self._model = SpeechT5ForTextToSpeech.from_pretrained(source).to(device).eval()
        self._vocoder = SpeechT5HifiGan.from_pretrained(vocoder).to(device).eval()
        self._voices = {path.stem: numpy.load(path) for path in Path(source, "voices").glob("*.npy")}
        self.rate = int(self._vocoder.config.sampling_rate)

    def speak(self, text: str, voice: str) -> Samples:
        torch, device = self._torch, self._model.device
        embedding = torch.tensor(self._get_embedding(voice), dtype=torch.float32, device=device).reshape(1, -1)
        tokens = self._processor(text=text, return_tensors="pt").input_ids.to(device)
        with torch.inference_mode():
            spoken = self._model.generate_speech(tokens, embedding, vocoder=self._vocoder)
        samples: Samples = spoken.float().cpu().numpy()
        return samples

    def _get_embedding(self, voice: str) -> Samples:
        """Return the speaker embedding; `default` without a file is a neutral speaker (zeros)."""
        if voice == "default" and voice not in self._voices:
            return numpy.zeros(self._model.config.speaker_embedding_dim, dtype=numpy.float32)
        chosen: Samples = self._voices[voice]
        return chosen


def answer_speech(request: SpeechRequest, served: str, engine: Voice) -> Response:
    """Return the HTTP answer to a request, with OpenAI's structures."""
    if request.model != served:
        raise HTTPException(404, f"the model `{request.model}` does not exist; this endpoint serves `{served}`")
    try:
        samples = engine.speak(request.input, request.voice)
    except KeyError:
        raise HTTPException(400, f"the voice `{request.voice}` does not exist") from None
    if request.response_format == "pcm":
        return Response(_encode_pcm(samples), media_type=f"audio/pcm;rate={engine.rate}")
    return Response(encode_wav(samples, engine.rate), media_type="audio/wav")


def encode_wav(samples: Samples, rate: int) -> bytes:
    """Encode samples as a mono WAV file with 16 bits per sample."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(_encode_pcm(samples))
    return buffer.getvalue()


def _encode_pcm(samples: Samples) -> bytes:
    return (numpy.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


api = FastAPI(title="Text to speech")


@serve.deployment(name="Speech")
@serve.ingress(api)
class Speech:
    """One replica: one model, one request at a time on its thread."""

    def __init__(self, model: str, source: str, vocoder: str) -> None:
        self._served = model
        self._engine: Voice = SpeechT5(source, vocoder)

    @api.get("/v1/models")
    def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": self._served, "object": "model", "owned_by": "rayhelm"}]}

    @api.post("/v1/audio/speech")
    def speech(self, request: SpeechRequest) -> Response:
        return answer_speech(request, self._served, self._engine)


def build_app(args: dict[str, str]) -> Application:
    """Build the application. `args`: `model` (the name that clients send), `source` and `vocoder` (folders)."""
    application: Application = Speech.bind(args["model"], args["source"], args["vocoder"])  # type: ignore[attr-defined]
    return application
