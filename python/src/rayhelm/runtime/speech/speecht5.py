"""SpeechT5 of transformers with its vocoder.

Voices are speaker embeddings: `voices/NAME.npy` in the model's folder. `default` is a neutral one without a file.
"""

from pathlib import Path

import numpy

from rayhelm.runtime.speech.encoding import Samples
from rayhelm.runtime.speech.engine import load, select_device
from rayhelm.runtime.speech.text import split_text

__all__ = ["SpeechT5"]

_DUMMY_FRAMES = 4.0
"""Least number of frames per letter with random weights, which would stop at once."""


class SpeechT5:
    """An engine for checkpoints like `microsoft/speecht5_tts`."""

    def __init__(self, source: str, vocoder: str, load_format: str = "auto") -> None:
        from transformers import SpeechT5ForTextToSpeech, SpeechT5HifiGan, SpeechT5Tokenizer

        self._device = select_device()
        self._tokenizer = SpeechT5Tokenizer.from_pretrained(source)
        self._model = load(SpeechT5ForTextToSpeech, source, load_format).to(self._device)
        self._vocoder = load(SpeechT5HifiGan, vocoder, load_format).to(self._device)
        neutral = numpy.zeros(self._model.config.speaker_embedding_dim, dtype=numpy.float32)
        files = sorted(Path(source, "voices").glob("*.npy"))
        self._least = _DUMMY_FRAMES if load_format == "dummy" else 0.0
        self._embeddings = {"default": neutral} | {path.stem: numpy.load(path) for path in files}
        self.voices = tuple(self._embeddings)
        self.rate = int(self._vocoder.config.sampling_rate)

    def split(self, text: str) -> list[str]:
        # The vocabulary has letters only. A token is one letter, and two are the start and the end.
        words = self._tokenizer.normalizer(text)
        return split_text(words, self._model.config.max_text_positions - 2)

    def speak(self, piece: str, voice: str) -> Samples:
        import torch

        speaker = torch.as_tensor(self._embeddings[voice], dtype=torch.float32, device=self._device).reshape(1, -1)
        tokens = self._tokenizer(piece, return_tensors="pt").input_ids.to(self._device)
        # The model drops activations at random. With a seed, it speaks the same text in the same way each time.
        torch.manual_seed(0)
        spoken = self._model.generate_speech(tokens, speaker, vocoder=self._vocoder, minlenratio=self._least)
        samples: Samples = spoken.float().cpu().numpy()
        return samples
