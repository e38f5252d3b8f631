"""What the result belongs to."""

import hashlib
import json
from pathlib import Path

from data_path.paths import PATHS, render_service
from rayhelm.facts.versions import versions
from rayhelm.run.local.data_path import read_data_path

__all__ = ["compute_digest"]

_FOLDER = Path(__file__).parent


def compute_digest() -> str:
    """Return the digest of what is served on each path, the load, and the versions of Ray and vLLM."""
    services = [render_service(path, "/model") for path in PATHS]
    served = [[json.loads(each["spec"]["serveConfigV2"]), read_data_path(each)] for each in services]
    sources = [(_FOLDER / name).read_text() for name in ("load.py", "paths.py")]
    inputs = [served, sources, versions().ray, versions().vllm]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
