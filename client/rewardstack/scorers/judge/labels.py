"""Find the token IDs of labels with the judge's `POST /tokenize`.

Labels are one-token answers, such as `0` and `1`, whose probabilities give a verdict.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable, Sequence
from typing import Any

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import field_error
from rewardstack.core.lru import LruCache
from rewardstack.errors import RejectedError, ReplyError
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge.api import Api
from rewardstack.scorers.judge.models import Model
from rewardstack.transport.discovery import MAX_SERVERS
from rewardstack.transport.message import Message

TOKENIZE = "/tokenize"


def label_request(label: str, model: str) -> dict[str, Any]:
    """Return the body of the request to `TOKENIZE` for the tokens of a label, without special tokens."""
    return {"model": model, "prompt": label, "add_special_tokens": False}


class LabelTokens:
    """Finds the tokens of labels; each label is requested once per model.

    Args:
        api: sends the requests.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._cached: LruCache[Hashable, dict[str, tuple[int, ...]]] = LruCache(MAX_SERVERS)

    async def find(
        self,
        labels: Sequence[str],
        model: Model,
        destination: Destination,
        deadline: SharedDeadline,
    ) -> tuple[int, ...]:
        """Return the token ID of each label, in order.

        Args:
            labels: the texts of the labels.
            model: the model whose tokenizer is used.
            destination: the judge's servers and key.
            deadline: the caller's deadline.

        Raises:
            RequestError: a label is not one token, or two labels have the same token.
            ServiceError: the server does not answer.
        """
        key = destination, model.name, model.root
        known = self._cached.get(key)
        if known is None:
            self._cached.put(key, known := {})
        missing = [label for label in labels if label not in known]
        results = await asyncio.gather(*(self._tokens(label, model.name, destination, deadline) for label in missing))
        known.update(zip(missing, results, strict=True))
        ids = []
        for label in labels:
            tokens = known[label]
            if len(tokens) != 1:
                why = f"{label!r} is {len(tokens)} tokens for {model.name}; choose labels of one token"
                raise field_error("labels", why)
            if tokens[0] in ids:
                why = f"{label!r} is the same token as another label for {model.name}; choose other labels"
                raise field_error("labels", why)
            ids.append(tokens[0])
        return tuple(ids)

    async def _tokens(
        self, label: str, model: str, destination: Destination, deadline: SharedDeadline
    ) -> tuple[int, ...]:
        body = json.dumps(label_request(label, model)).encode()
        message = Message("POST", TOKENIZE, body, read=_parse_tokens, is_optional=True)
        try:
            tokens: tuple[int, ...] = await self._api.ask(destination, message, deadline)
            return tokens
        except RejectedError as error:
            raise RejectedError(
                f"verdict 'logprob' needs POST {TOKENIZE} of the judge, to check the labels: {error}; let {TOKENIZE} "
                "through the gateway, or do not use 'logprob' (which compare = 'pairwise' also uses)",
                error.status,
            ) from error


def _parse_tokens(reply: bytes) -> tuple[int, ...]:
    try:
        return tuple(int(token) for token in json.loads(reply)["tokens"])
    except (ValueError, KeyError, TypeError) as error:
        raise ReplyError(f"the judge's reply to {TOKENIZE} is not a list of tokens") from error
