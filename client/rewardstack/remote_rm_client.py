"""A blocking client of `/get_reward` that replaces Align-Anything's class `RemoteRewardModel`.

Protocol and signatures are those of `align_anything/models/remote_rm/remote_rm_client.py` in the repository
PKU-Alignment/align-anything. Unlike the original, this class validates replies and reports errors. Requests go through
`rewardstack.transport`, which adds retries, proxies, TLS, connection reuse and outage detection.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Sequence
from functools import partial
from numbers import Real
from typing import Any
from urllib.parse import urlsplit

from rewardstack.client import reward_service
from rewardstack.core import failure_rate
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.event_loop import run
from rewardstack.errors import RejectedError, ReplyError, RequestError
from rewardstack.score import Score
from rewardstack.settings import Settings, parse_urls
from rewardstack.transport.http import display_url, find_proxy
from rewardstack.transport.message import PATH_FIELD, Message

log = logging.getLogger(__name__)


class RemoteRewardModel:
    """A client that requests the rewards of batches from a reward server.

    Args:
        endpoint: URL such as `http://localhost:6000/get_reward`; `?reward_type=NAME` selects the reward function.
        timeout: seconds without progress after which a batch fails.
        retry_times: maximum duration of a batch, as a multiple of `timeout`. Until then, lost connections and overload
            are retried. Invalid replies and status 500 are retried `REWARDSTACK_MAX_RETRIES` times at most. Errors such
            as 400 are final.
        api_key: bearer token; by default `REWARD_SERVER_API_KEY` if `endpoint` is on a server in `REWARD_SERVER_URL`,
            else none.

    Attributes:
        statuses: status of each sample in the last batch (`ok`, `fallback`, `unscored`, `failed`); empty if the server
            does not send statuses. The reward of an `unscored` or `failed` sample is 0.0.

    Raises:
        SettingsError: the URL in `endpoint` is invalid, or an environment variable (a setting or a proxy) is invalid.
        RequestError: `endpoint` is not a string with one URL, or `retry_times` or `timeout` is not above 0.
    """

    def __init__(
        self, endpoint: str, timeout: float = 100, retry_times: int = 3, *, api_key: str | None = None
    ) -> None:
        if not isinstance(endpoint, str):
            raise RequestError(
                f"endpoint: expected a URL such as http://localhost:6000/get_reward, got {endpoint!r}", "endpoint"
            )
        address, _, query = endpoint.partition("?")
        base = address.rstrip("/").removesuffix("/get_reward")
        if parse_urls(base, "endpoint") != (base,):
            raise RequestError(f"endpoint: {endpoint!r} is not a single URL; pass one URL", "endpoint")
        for name, value in (("timeout", timeout), ("retry_times", retry_times)):
            if not isinstance(value, Real) or not value > 0:
                raise RequestError(f"{name}: expected a number above 0, got {value!r}", name)
        find_proxy(address)
        self.endpoint = endpoint
        self.timeout = timeout
        self.retry_times = retry_times
        self.statuses: list[str] = []
        parts = urlsplit(address)
        folder, _, name = parts.path.rpartition("/")
        self._base_url = f"{parts.scheme}://{parts.netloc}{folder}"
        self._path = f"/{name}?{query}" if query else f"/{name}"
        self._api_key = _default_key(endpoint) if api_key is None else api_key

    def score(
        self, prompts: Sequence[str], responses: Sequence[str], golden_responses: Sequence[str] | None = None
    ) -> list[float]:
        """Return the rewards of a batch in order.

        Args:
            prompts: one per sample.
            responses: one per sample.
            golden_responses: references, one per sample; None if the reward function needs no references, or if the
                server has them.

        Raises:
            RequestError: an argument is not a list of strings, or the lists differ in length.
            UnreachableError, DeadlineError: the server did not answer in time; the message has the last error.
            RejectedError: the server rejected the request.
            ReplyError: the server answered with an error or an invalid reply.
            FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
        """
        body = _body(prompts, responses, golden_responses)
        self.statuses = []
        if not body["prompts"]:
            return []
        reply = run(self._post(body, Settings.from_env()))
        self.statuses = _statuses(reply)
        failed, unscored = self.statuses.count("failed"), self.statuses.count("unscored")
        if failed or unscored:
            log.warning(
                "%s: %d of %d samples have no score (failed: %d, unscored: %d); their reward is 0.0",
                display_url(self.endpoint), failed + unscored, len(self.statuses), failed, unscored,
            )  # fmt: skip
        return [float(reward) for reward in reply["rewards"]]

    async def _post(self, body: dict[str, list[str]], settings: Settings) -> dict[str, Any]:
        """Return the validated reply to a batch; count failed samples toward `REWARDSTACK_MAX_FAILURE_RATE`."""
        deadline = SharedDeadline(Deadline(self.timeout, self.timeout * self.retry_times))
        service = reward_service(self._base_url, self._api_key, settings)
        read = partial(_read, len(body["prompts"]))
        message = Message("POST", self._path, json.dumps(body).encode(), read=read)
        try:
            reply: dict[str, Any] = await service.ask(message, deadline)
        except RejectedError as error:
            if error.status != 405 and error.field != PATH_FIELD:
                raise
            parts = urlsplit(self._base_url)
            remedy = f"set endpoint to {parts.scheme}://{parts.netloc}/get_reward"
            raise RejectedError(
                f"{error}; {remedy}", error.status, cause=error.cause, complaint=error.complaint
            ) from error
        failed = Score.failed(f"{display_url(self.endpoint)} reports a failed sample; see the server's log")
        failure_rate.add_scores([failed if status == "failed" else Score(0.0) for status in _statuses(reply)], settings)
        return reply


def _default_key(endpoint: str) -> str:
    settings = Settings.from_env()
    origins = {urlsplit(url)[:2] for url in settings.reward_server_urls}
    return settings.reward_server_api_key if urlsplit(endpoint)[:2] in origins else ""


def _body(
    prompts: Sequence[str], responses: Sequence[str], golden_responses: Sequence[str] | None
) -> dict[str, list[str]]:
    columns = {"prompts": prompts, "responses": responses}
    columns |= {} if golden_responses is None else {"golden_responses": golden_responses}
    body = {name: _texts(name, texts) for name, texts in columns.items()}
    for name, texts in body.items():
        if len(texts) != len(body["prompts"]):
            raise RequestError(f"{name}: {len(texts)} values for {len(body['prompts'])} prompts", name)
    return body


def _texts(name: str, texts: Any) -> list[str]:
    """Return the values of an argument; raise RequestError if it is not a list of strings."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise RequestError(f"{name}: expected a list of strings, got {type(texts).__name__}", name)
    result = list(texts)
    for index, text in enumerate(result):
        if not isinstance(text, str):
            raise RequestError(
                f"{name}: expected a list of strings, got {type(text).__name__} at position {index}", name
            )
    return result


def _read(count: int, data: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(data)
    except (ValueError, RecursionError):
        raise ReplyError("not JSON") from None
    rewards = reply.get("rewards") if isinstance(reply, dict) else None
    if not isinstance(rewards, list) or len(rewards) != count:
        raise ReplyError(f"expected {count} numbers under `rewards`; is this a reward server's /get_reward?")
    for reward in rewards:
        if isinstance(reward, bool) or not isinstance(reward, (int, float)) or not math.isfinite(reward):
            raise ReplyError(f"a reward is {str(reward)[:40]!r}, not a number")
    return reply


def _statuses(reply: dict[str, Any]) -> list[str]:
    statuses = reply.get("statuses")
    return [str(status) for status in statuses] if isinstance(statuses, list) else []
