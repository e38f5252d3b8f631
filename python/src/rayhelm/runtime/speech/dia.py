"""Dia of transformers with its codec, Descript Audio Codec. Both have licenses without restrictions, and text is bytes.

Voices are recordings: `voices/NAME.wav` in the model's folder, with what is said in `voices/NAME.txt`. Without one,
`default` is the voice that the model chooses, which can differ from sentence to sentence.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rayhelm.runtime.speech.encoding import Samples, decode
from rayhelm.runtime.speech.engine import load, select_device
from rayhelm.runtime.speech.text import split_text

__all__ = ["Dia"]

_SPEAKER = "[S1]"
_LEAST, _MOST = 100, 400
"""Characters of a piece: Dia speaks shorter ones badly, and its context is about 35 s of audio."""
_FRAMES, _DUMMY_FRAMES = 3072, 32
"""Largest number of frames of a piece. Random weights would not stop before."""
_GUIDANCE, _TEMPERATURE, _TOP_P, _TOP_K = 3.0, 1.8, 0.9, 45
"""As in the model's documentation."""
_ONE_TEXT = {"padding": False}


@dataclass(frozen=True)
class _Recording:
    samples: Samples
    text: str


class Dia:
    """An engine for checkpoints like `nari-labs/Dia-1.6B-0626`."""

    def __init__(self, source: str, codec: str, load_format: str = "auto") -> None:
        import torch
        from transformers import DacModel, DiaFeatureExtractor, DiaForConditionalGeneration, DiaProcessor, DiaTokenizer

        self._device = select_device()
        dtype = torch.float32 if self._device == "cpu" else torch.bfloat16
        self._model = load(DiaForConditionalGeneration, source, load_format).to(self._device, dtype)
        # Not by its own `from_pretrained`, which asks the hub for the codec.
        self._processor = DiaProcessor(
            DiaFeatureExtractor.from_pretrained(source),
            DiaTokenizer.from_pretrained(source),
            load(DacModel, codec, load_format).to(self._device),
        )
        self.rate = int(self._processor.audio_tokenizer.config.sampling_rate)
        self._frames = _DUMMY_FRAMES if load_format == "dummy" else _FRAMES
        self._recordings = {path.stem: self._read(path) for path in sorted(Path(source, "voices").glob("*.wav"))}
        self.voices = tuple(dict.fromkeys(["default", *self._recordings]))

    def split(self, text: str) -> list[str]:
        return split_text(text, _MOST, least=_LEAST)

    def speak(self, piece: str, voice: str) -> Samples:
        import torch

        # The model samples. With a seed, the same text is spoken in the same way each time.
        torch.manual_seed(0)
        inputs, known = self._prepare(piece, self._recordings.get(voice))
        made = self._model.generate(
            **inputs,
            max_new_tokens=self._frames,
            do_sample=True,
            guidance_scale=_GUIDANCE,
            temperature=_TEMPERATURE,
            top_p=_TOP_P,
            top_k=_TOP_K,
        )
        spoken = self._processor.batch_decode(made, audio_prompt_len=known)[0]
        samples: Samples = spoken.detach().float().cpu().numpy()
        return samples

    def _prepare(self, piece: str, recording: _Recording | None) -> tuple[Any, int | None]:
        """Return the inputs of the model, and how many frames of the result are the recording."""
        text = piece if piece.startswith("[S") else f"{_SPEAKER} {piece}"
        if recording is None:
            return self._processor(text=[text], text_kwargs=_ONE_TEXT, return_tensors="pt").to(self._device), None
        inputs = self._processor(
            text=[f"{_SPEAKER} {recording.text} {piece}"],
            audio=recording.samples,
            text_kwargs=_ONE_TEXT,
            audio_kwargs={"sampling_rate": self.rate},
            return_tensors="pt",
        ).to(self._device)
        return inputs, self._processor.get_audio_prompt_len(inputs["decoder_attention_mask"])

    def _read(self, path: Path) -> _Recording:
        text = path.with_suffix(".txt")
        if not text.is_file():
            raise ValueError(f"{text} is missing: write what {path.name} says")
        return _Recording(decode(path, self.rate), text.read_text(encoding="utf-8").strip())
