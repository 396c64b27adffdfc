"""Cache keys: all that determines a score, hashed, so that a change of any of it is another key.

Every part is written with its length before it, so no two different lists of parts give the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardstack.core.json_types import plain
from rewardstack.core.wire import is_servers_own
from rewardstack.score import Item

FLOW_VERSION = "1"
"""Raised whenever the pipeline itself (choice of references, reading of values) changes what a score is."""

PREFIX = "rewardstack:1:"
EVERY_FIELD = "*"
DATA_SOURCE = "data_source"
CACHE_ENABLED = "cache_enabled"
"""Field of `extra_info`: false where a sample's score is neither read from a cache nor kept."""
CLIENT_FIELDS = frozenset({"server_url", "api_key", "timeout", CACHE_ENABLED})
"""Fields of `extra_info` that say where and how to ask; no reward function reads them, and they change no score."""

Range = tuple[float, float]
"""The lowest and the highest value that a score can have."""
ANY: Range = (-math.inf, math.inf)
UNIT: Range = (0.0, 1.0)


class Key(NamedTuple):
    """What a score depends on, hashed.

    Args:
        text: the cache key.
        deterministic: whether asking twice gives the same score, so that identical requests in flight share one call.
        range: of the scores that can be kept under it.
    """

    text: str
    deterministic: bool = True
    range: Range = ANY


def digest(parts: Iterable[str]) -> Any:
    """A hash over `parts`, open for more of them."""
    state = blake2b(digest_size=20)
    for part in parts:
        _add(state, part)
    return state


def extended(state: Any, *parts: str) -> str:
    """The hash over what `state` is over and `parts`, in hexadecimal; `state` stays as it is."""
    own = state.copy()
    for part in parts:
        _add(own, part)
    text: str = own.hexdigest()
    return text


def rule_key(
    name: str, fingerprint: str, fields: Sequence[str], items: Sequence[Item], range: Range = ANY
) -> list[Key | None]:
    """Keys for a reward function's scores; the reward server and its clients come to the same ones.

    Args:
        name: the reward function.
        fingerprint: hash of its source and of its libraries' versions.
        fields: what it reads of `extra_info`; `("*",)` for all of it.
        items: the samples.
        range: of its values.

    Returns:
        A key for each item; None where `extra_info` holds what cannot be written down.
    """
    state = digest(("rule", FLOW_VERSION, name, fingerprint))
    return [_item_key(state, item, fields, range) for item in items]


def _item_key(state: Any, item: Item, fields: Sequence[str], range: Range) -> Key | None:
    extra = read_fields(item, fields)
    try:
        text = json.dumps(extra, sort_keys=True) if extra else ""
    except (TypeError, ValueError):
        return None
    return Key(PREFIX + extended(state, item.solution, text, *item.references), range=range)


def tenant_key(key: Key, tenant: str) -> Key:
    """`key` for the results of one tenant alone; its end, which values are checked against, is its own as well."""
    return key._replace(text=PREFIX + digest((key.text, tenant)).hexdigest())


def tenant_of(api_key: str) -> str:
    """The name under which the holder of `api_key` has results of its own; empty for no key."""
    return digest(("tenant", api_key)).hexdigest()[:16] if api_key else ""


def read_fields(item: Item, fields: Sequence[str]) -> dict[str, Any]:
    """Return the part of a sample's `extra_info` that a reward function reads, in plain JSON types where it can be.

    Args:
        item: the sample.
        fields: names, or `*` for all of them but those that only a server's own settings may give. `data_source` is the
            sample's own where `extra_info` has none.
    """
    extra = item.extra
    if not fields or not (extra or DATA_SOURCE in fields):
        return {}
    wanted = [name for name in extra if not is_servers_own(name)] if EVERY_FIELD in fields else fields
    found = {name: plain(extra[name]) for name in wanted if name in extra and name not in CLIENT_FIELDS}
    if DATA_SOURCE in fields:
        found.setdefault(DATA_SOURCE, item.data_source)
    return found


def may_be_cached(extra: Mapping[str, Any]) -> bool:
    """Whether the score of a sample with this `extra_info` may be read from a cache, and kept."""
    return CACHE_ENABLED not in extra or plain(extra[CACHE_ENABLED]) is not False


def _add(state: Any, part: str) -> None:
    data = part.encode("utf-8", "surrogatepass")
    state.update(len(data).to_bytes(8, "little"))
    state.update(data)
