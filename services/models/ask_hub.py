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


def check_availability(model: str) -> str:
    """Return the availability of a model: `cached`, `reachable`, `unreachable` or `malformed` (an invalid name).

    A hub that answers with any HTTP status, even an error, counts as reachable.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        configuration = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return "malformed"
    if isinstance(configuration, str) and has_weights(Path(configuration).parent):
        return "cached"
    try:
        HfApi().model_info(model, timeout=SECONDS)
    except HfHubHTTPError:
        return "reachable"
    except Exception:  # noqa: BLE001 - different libraries raise if there is no network, no DNS or a broken proxy
        return "unreachable"
    return "reachable"


def has_weights(snapshot: Path) -> bool:
    """Return whether a cached model has its weights: all files of its index, or any weights file if it has no index."""
    index = snapshot / INDEX
    if index.exists():
        return all((snapshot / file).exists() for file in set(json.loads(index.read_text())["weight_map"].values()))
    return any(any(snapshot.glob(kind)) for kind in WEIGHTS)


if __name__ == "__main__":
    print(check_availability(sys.argv[1]))
