"""Compute cache keys: a key is a hash of everything that determines a score.

The length of each part is hashed before the part, so that different lists of parts never hash the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardstack.core.json_types import plain
from rewardstack.core.messages import TRANSCRIPT, WHOLE_RESPONSE
from rewardstack.core.wire import is_server_field
from rewardstack.score import Item
from rewardstack_verifier.transcript import Transcript

PIPELINE_VERSION = "1"
"""Increment this when a change of the pipeline itself (e.g. selection of references) changes scores."""

PREFIX = "rewardstack:1:"
EVERY_FIELD = "*"
"""In a list of fields: all fields of `extra_info`."""
DATA_SOURCE = "data_source"
CACHE_ENABLED = "cache_enabled"
"""Field of `extra_info`; false disables the cache for the sample."""
CLIENT_FIELDS = frozenset({"server_url", "api_key", "timeout", TRANSCRIPT, CACHE_ENABLED})
"""Fields of `extra_info` that configure the request. They are not part of keys, but the text that `transcript`
selects is."""

Range = tuple[float, float]
"""The lowest and the highest possible value of a score."""
ANY: Range = (-math.inf, math.inf)
UNIT: Range = (0.0, 1.0)


class Key(NamedTuple):
    """The cache key of a score.

    Args:
        text: the key as a string.
        deterministic: whether scoring a sample again gives the same score. If so, equal samples in flight share a call.
        range: valid range of the scores under this key; cached scores outside the range are ignored.
    """

    text: str
    deterministic: bool = True
    range: Range = ANY


def digest(parts: Iterable[str]) -> Any:
    """Return a hash object of `parts`, to pass to `hex_digest`."""
    state = blake2b(digest_size=20)
    for part in parts:
        _update(state, part)
    return state


def hex_digest(state: Any, *parts: str) -> str:
    """Return the hex digest of `state` and further `parts`, without changing `state`."""
    extended = state.copy()
    for part in parts:
        _update(extended, part)
    text: str = extended.hexdigest()
    return text


def rule_key(
    name: str, fingerprint: str, fields: Sequence[str], items: Sequence[Item], range: Range = ANY
) -> list[Key | None]:
    """Return the cache keys of a reward function's scores; the reward server and its clients compute the same keys.

    Args:
        name: the name of the reward function.
        fingerprint: hash of the function's source and of its libraries' versions.
        fields: the fields of `extra_info` that the function reads; `("*",)` for all.
        items: the samples.
        range: valid range of the function's values.

    Returns:
        A key for each item; None if the fields that the function reads are not JSON serializable.
    """
    state = digest(("rule", PIPELINE_VERSION, name, fingerprint))
    return [_item_key(state, item, fields, range) for item in items]


def _item_key(state: Any, item: Item, fields: Sequence[str], range: Range) -> Key | None:
    extra = read_fields(item, fields)
    try:
        text = json.dumps(extra, sort_keys=True) if extra else ""
    except (TypeError, ValueError):
        return None
    return Key(PREFIX + hex_digest(state, item.solution, text, *item.references), range=range)


def tenant_key(key: Key, tenant: str) -> Key:
    """Return `key` in the cache namespace of a tenant (`tenant_of`).

    A stored value contains the end of its key, so the value is invalid if it is copied to the key of another tenant.
    """
    return key._replace(text=PREFIX + digest((key.text, tenant)).hexdigest())


def tenant_of(api_key: str) -> str:
    """Return the cache namespace of the callers with an API key; empty for an empty key."""
    return digest(("tenant", api_key)).hexdigest()[:16] if api_key else ""


def read_fields(item: Item, fields: Sequence[str]) -> dict[str, Any]:
    """Return the part of a sample's `extra_info` that a reward function reads, in plain JSON types if possible.

    Args:
        item: the sample.
        fields: names of the fields to return. `*` means all fields, except server fields (`is_server_field`), which are
            returned only if they are also named. `CLIENT_FIELDS` are never returned. If `fields` names `data_source`
            and `extra_info` does not have it, the sample's `data_source` is returned. `WHOLE_RESPONSE` is the whole
            response, if it has other turns than the last; for a string, `transcript` says how to split it.
    """
    extra = item.extra
    if not fields or not (extra or DATA_SOURCE in fields or item.messages is not None):
        return {}
    wanted = fields
    if EVERY_FIELD in fields:
        wanted = [name for name in extra if name in fields or not is_server_field(name)]
    found = {name: plain(extra[name]) for name in wanted if name in extra and name not in CLIENT_FIELDS}
    if DATA_SOURCE in fields:
        found.setdefault(DATA_SOURCE, item.data_source)
    if WHOLE_RESPONSE in fields:
        found.pop(WHOLE_RESPONSE, None)
        if item.messages is not None:
            is_string = isinstance(item.messages, Transcript)
            found[WHOLE_RESPONSE] = item.messages.response if is_string else plain(item.messages)
            found |= {TRANSCRIPT: item.transcript} if is_string else {}
    return found


def may_be_cached(extra: Mapping[str, Any]) -> bool:
    """Return whether the score of a sample with this `extra_info` may be cached."""
    return CACHE_ENABLED not in extra or plain(extra[CACHE_ENABLED]) is not False


def _update(state: Any, part: str) -> None:
    data = part.encode("utf-8", "surrogatepass")
    state.update(len(data).to_bytes(8, "little"))
    state.update(data)
