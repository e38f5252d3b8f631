"""GPUs that HAMi's device plugin registers in an annotation of the node."""

import json

__all__ = ["REGISTER", "count_registered"]

REGISTER = "hami.io/node-nvidia-register"


def count_registered(text: str) -> int:
    """Return the number of GPUs; 0 if the text is in another form.

    HAMi writes JSON, or, before, `UUID,count,memory,...:` for each GPU (Project-HAMi/HAMi, pkg/device/devices.go)."""
    try:
        devices = json.loads(text)
    except ValueError:
        parts = [part.split(",") for part in text.split(":") if part.strip()]
        return len(parts) if parts and all(len(part) in (7, 9) for part in parts) else 0
    return len(devices) if isinstance(devices, list) and all(isinstance(item, dict) for item in devices) else 0
