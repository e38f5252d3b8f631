"""What the application asks of a text-to-speech model, and what all of them need of the device."""

from pathlib import Path
from typing import Any, Protocol

from rayhelm.runtime.speech.encoding import Samples

__all__ = ["SpeechEngine", "find_folder", "limit_gpu_memory", "load", "select_device"]


class SpeechEngine(Protocol):
    """A text-to-speech model with its voices."""

    rate: int
    """Samples per second."""
    voices: tuple[str, ...]

    def split(self, text: str) -> list[str]:
        """Return the pieces that `speak` takes."""

    def speak(self, piece: str, voice: str) -> Samples:
        """Return the samples of a piece. One call at a time."""


def find_folder(source: str) -> str:
    """Return the folder of a model: `source` itself, or where the files of `ID` or `ID@REVISION` of the hub are."""
    if Path(source).is_dir():
        return source
    from huggingface_hub import snapshot_download

    name, _, revision = source.partition("@")
    return str(snapshot_download(name, revision=revision or None))


def select_device() -> str:
    """Return torch's name of the accelerator of this process, of any vendor, or the CPU."""
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return str(accelerator) if accelerator else "cpu"


def limit_gpu_memory(share: float) -> None:
    """Keep this process within its share of the GPU: an engine of vLLM on the same GPU counts on the rest."""
    import torch

    if 0 < share < 1 and torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(share)


def load(model: Any, folder: str, load_format: str) -> Any:
    """Load a model of a class of transformers. With `dummy`, as in vLLM, its weights are random and always the same."""
    if load_format != "dummy":
        return model.from_pretrained(folder).eval()
    import torch

    torch.manual_seed(0)
    return model(model.config_class.from_pretrained(folder)).eval()
