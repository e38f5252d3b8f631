"""Text to speech as a Serve application, with OpenAI's `POST /v1/audio/speech`. vLLM's server has no such task.

It needs only packages that come with Ray Serve LLM: transformers runs the models, PyAV encodes the audio.
"""

from rayhelm.runtime.speech.application import build_app

__all__ = ["build_app"]
