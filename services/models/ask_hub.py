"""`ask_hub.py MODEL`: print whether a model is `cached`, `reachable` (the hub answers), `unreachable` or `malformed`.

Run it with an interpreter that has huggingface_hub, which knows the hub's address, the proxies and the cache.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SECONDS = 5.0
INDEX = "model.safetensors.index.json"
WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


def where(model: str) -> str:
    """Return the availability of a model: `cached`, `reachable`, `unreachable` or `malformed`.

    A hub that answers with any HTTP status, even an error, counts as reachable.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        configuration = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return "malformed"
    if isinstance(configuration, str) and complete(Path(configuration).parent):
        return "cached"
    try:
        HfApi().model_info(model, timeout=SECONDS)
    except HfHubHTTPError:
        return "reachable"
    except Exception:  # noqa: BLE001 - offline, no route, no DNS, a proxy error: each raises from another library
        return "unreachable"
    return "reachable"


def complete(snapshot: Path) -> bool:
    """Return whether a cached model has its weights: all files of its index, or without an index any weights file."""
    index = snapshot / INDEX
    if index.exists():
        return all((snapshot / file).exists() for file in set(json.loads(index.read_text())["weight_map"].values()))
    return any(any(snapshot.glob(kind)) for kind in WEIGHTS)


if __name__ == "__main__":
    print(where(sys.argv[1]))
