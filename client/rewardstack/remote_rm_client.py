"""A blocking client of Align-Anything's `/get_reward`, in place of that project's own `RemoteRewardModel`.

Protocol and signatures: `align_anything/models/remote_rm/remote_rm_client.py` of PKU-Alignment/align-anything. Beside
the original it checks TLS certificates and replies, tries only what may help again, and says what went wrong.
Needs `requests` (extra `cli`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.response import BaseHTTPResponse
from urllib3.util import Retry

from rewardstack.core.deadline import HEADER
from rewardstack.errors import OverloadError, RejectedError, ReplyError, RequestError, ServiceError, UnreachableError
from rewardstack.settings import Settings, parse_urls
from rewardstack.transport.http import proxy_of, shown
from rewardstack.transport.reply import OVERLOADED, complaint_in

TRY_AGAIN = (*OVERLOADED, 500)
FIRST_PAUSE = 1.0
"""Seconds before the second try; doubled before each further one."""
LONGEST_PAUSE = 30.0
"""Seconds; a longer Retry-After is cut to this."""

log = logging.getLogger(__name__)


class RemoteRewardModel:
    """Asks a reward server for the rewards of a batch.

    Args:
        endpoint: such as `http://localhost:6000/get_reward`; `?reward_type=NAME` picks the reward function.
        timeout: seconds that one try may wait for the connection, and between bytes of the reply.
        retry_times: tries in all. Lost connections, timeouts, 408, 429 and 5xx are tried again; no other 4xx is.
        api_key: sent as a bearer token; by default `REWARD_SERVER_API_KEY`, and that only where `endpoint` is on one
            of the servers of `REWARD_SERVER_URL`.

    Attributes:
        statuses: of the last batch, one word a sample (`ok`, `fallback`, `unscored`, `failed`); empty where the
            server is one that sends none. A sample that is `unscored` or `failed` has the reward 0.0.

    Raises:
        SettingsError: `endpoint` is no URL, or the environment names a proxy for it that is none for HTTP.
        RequestError: `retry_times` or `timeout` is not above 0.
    """

    def __init__(
        self, endpoint: str, timeout: float = 100, retry_times: int = 3, *, api_key: str | None = None
    ) -> None:
        address = endpoint.partition("?")[0]
        if parse_urls(address, "endpoint") != (address.rstrip("/"),):
            raise RequestError(f"endpoint: {endpoint!r} is not one URL", "endpoint")
        for name, value in (("timeout", timeout), ("retry_times", retry_times)):
            if not value > 0:
                raise RequestError(f"{name}: {value!r} is not above 0", name)
        self.endpoint = endpoint
        self.timeout = timeout
        self.retry_times = retry_times
        self.statuses: list[str] = []
        self._named = shown(endpoint)
        self._proxies = {urlsplit(address).scheme: proxy_of(address) or ""}  # beats what requests finds by itself
        self._api_key = _default_key(endpoint) if api_key is None else api_key

    def score(
        self, prompts: Sequence[str], responses: Sequence[str], golden_responses: Sequence[str] | None = None
    ) -> list[float]:
        """The rewards of a batch.

        Args:
            prompts: what was asked, one a sample.
            responses: what the policy wrote, one a sample.
            golden_responses: right answers, one a sample; None where the reward function needs none or the server
                has them.

        Returns:
            One reward a sample, in order.

        Raises:
            RequestError: the lists differ in length, or hold something else than strings.
            UnreachableError: no connection, or no answer in time, at the last try.
            OverloadError: 408, 429, 502, 503 or 504 at the last try.
            RejectedError: any other 4xx, or a redirect.
            ReplyError: any other 5xx at the last try, or a reply that is not what the protocol says.
        """
        body = _body(prompts, responses, golden_responses)
        self.statuses = []
        if not body["prompts"]:
            return []
        reply = self._post(body)
        rewards = _rewards(reply, len(body["prompts"]), self._named)
        self.statuses = _statuses(reply)
        self._warn()
        return rewards

    def _post(self, body: dict[str, Any]) -> Any:
        # A session a call: one that is kept would be shared with forked children, and by threads.
        with requests.Session() as session:
            adapter = HTTPAdapter(max_retries=_Tries.of(self.retry_times))
            session.mount("http://", adapter)
            session.mount("https://", adapter)
            try:
                reply = session.post(
                    self.endpoint,
                    json=body,
                    headers={HEADER: str(int(self.timeout * 1000))},
                    auth=_Bearer(self._api_key),
                    timeout=self.timeout,
                    proxies=self._proxies,
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                tries = "1 try" if self.retry_times == 1 else f"{self.retry_times} tries"
                raise UnreachableError(f"{self._named}: no answer after {tries}: {_root(error)}") from error
        if reply.status_code != 200:
            raise _refusal(reply)
        try:
            return reply.json()
        except ValueError as error:
            raise ReplyError(f"{self._named}: the reply is not JSON") from error

    def _warn(self) -> None:
        missing = [status for status in self.statuses if status in ("unscored", "failed")]
        if missing:
            log.warning(
                "%s: %d of %d samples have no score (failed: %d, unscored: %d); their reward is 0.0",
                self.endpoint, len(missing), len(self.statuses), missing.count("failed"), missing.count("unscored"),
            )  # fmt: skip


class _Tries(Retry):
    """urllib3's retries, with a first pause and a bound on Retry-After."""

    @classmethod
    def of(cls, tries: int) -> _Tries:
        return cls(total=tries - 1, status_forcelist=TRY_AGAIN, allowed_methods=None, raise_on_status=False)

    def get_backoff_time(self) -> float:
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (len(self.history) - 1))

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, LONGEST_PAUSE)


class _Bearer(requests.auth.AuthBase):
    """The API key; given as `auth` so that no `.netrc` replaces it."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _default_key(endpoint: str) -> str:
    settings = Settings.from_env()
    origins = {urlsplit(url)[:2] for url in settings.reward_server_urls}
    return settings.reward_server_api_key if urlsplit(endpoint)[:2] in origins else ""


def _body(
    prompts: Sequence[str], responses: Sequence[str], golden_responses: Sequence[str] | None
) -> dict[str, list[str]]:
    given = {"prompts": prompts, "responses": responses, "golden_responses": golden_responses}
    body = {name: list(texts) for name, texts in given.items() if texts is not None}
    for name, texts in body.items():
        if isinstance(given[name], str) or not all(isinstance(text, str) for text in texts):
            raise RequestError(f"{name}: expected a list of strings", name)
        if len(texts) != len(body["prompts"]):
            raise RequestError(f"{name}: {len(texts)} of them for {len(body['prompts'])} prompts", name)
    return body


def _rewards(reply: Any, count: int, endpoint: str) -> list[float]:
    rewards = reply.get("rewards") if isinstance(reply, dict) else None
    if not isinstance(rewards, list) or len(rewards) != count:
        raise ReplyError(
            f"{endpoint}: expected {count} numbers under `rewards`; is this a reward server's /get_reward?"
        )
    for reward in rewards:
        if isinstance(reward, bool) or not isinstance(reward, (int, float)) or not math.isfinite(reward):
            raise ReplyError(f"{endpoint}: a reward is {str(reward)[:40]!r}, not a number")
    return [float(reward) for reward in rewards]


def _statuses(reply: dict[str, Any]) -> list[str]:
    statuses = reply.get("statuses")
    return [str(status) for status in statuses] if isinstance(statuses, list) else []


def _refusal(reply: requests.Response) -> ServiceError:
    message = f"{shown(reply.url)} answered {reply.status_code}: {complaint_in(reply.content)}"
    if reply.status_code in OVERLOADED:
        return OverloadError(message)
    if reply.status_code >= 500 or reply.status_code < 300:
        return ReplyError(message)
    return RejectedError(message, reply.status_code)


def _root(error: BaseException) -> str:
    """What lies under the layers of requests and urllib3, such as "Connection refused"."""
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
