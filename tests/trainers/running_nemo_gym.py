"""NeMo Gym's own configuration, client and models reach the reward server as one of its resources servers.

Its collector needs Ray, a model and an environment for each server; what it asks of a resources server is asked here by
its `ServerClient`, and what it computes itself is computed beside.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from nemo_gym.base_resources_server import BaseVerifyRequest, BaseVerifyResponse
from nemo_gym.config_types import AggregateMetrics, AggregateMetricsRequest, BaseServerConfig
from nemo_gym.global_config import GlobalConfigDictParser, GlobalConfigDictParserConfig
from nemo_gym.reward_profile import compute_aggregate_metrics
from nemo_gym.server_utils import (
    GlobalAIOHTTPAsyncClientConfig,
    ServerClient,
    global_aiohttp_client_exit,
    set_global_aiohttp_client,
)
from omegaconf import OmegaConf

from rewardstack.core.deadline import HEADER
from services.stack.rundir import ROOT
from tests.support.snippets import block
from tests.trainers.conftest import Report

EXAMPLE = ROOT / "examples/nemo_gym"
ROWS = [json.loads(line) for line in (EXAMPLE / "tasks.jsonl").read_text().splitlines()]
REPLIES = [("#### 35", 1.0), (r"It is \boxed{0.125}.", 1.0), (r"It is \boxed{144}.", 0.0)]
"""To the rows, and the score of each."""
POLICY = {"policy_model": {"responses_api_models": {"openai_model": {"entrypoint": "app.py"}}}}


@pytest.fixture
def client(reward_url: str) -> ServerClient:
    """Gym's client, by the example's configuration, with the address of this test's server."""
    page = OmegaConf.create(block("docs/trainers.md", "yaml", "rewardstack:"))
    written = OmegaConf.merge(OmegaConf.load(EXAMPLE / "rewardstack.yaml"), page, POLICY)
    place = urlsplit(reward_url)
    written.rewardstack.resources_servers.rewardstack.host = place.hostname
    written.rewardstack.resources_servers.rewardstack.port = place.port
    parser = GlobalConfigDictParserConfig(
        dotenv_path=None, initial_global_config_dict=written, skip_load_from_cli=True, skip_load_from_dotenv=True
    )
    found = GlobalConfigDictParser().parse(parser)
    return ServerClient(head_server_config=BaseServerConfig(host="localhost", port=1), global_config_dict=found)


def asked(client: ServerClient, path: str, body: Any, **options: Any) -> Any:
    """The reply to a request of Gym's client."""

    async def ask() -> Any:
        set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
        try:
            reply = await client.post(server_name="rewardstack", url_path=path, json=body, **options)
            reply.raise_for_status()
            return await reply.json()
        finally:
            await asyncio.to_thread(global_aiohttp_client_exit)

    return asyncio.run(ask())


def body_of(row: dict[str, Any], reply: str) -> dict[str, Any]:
    """A request to verify, which Gym's own model accepts."""
    content = {"type": "output_text", "text": reply, "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
    response = {"id": "r", "created_at": 0.0, "model": "policy", "object": "response", "output": [message]}
    response |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    BaseVerifyRequest.model_validate(body := {**row, "response": response})
    return body


def test_verify(client: ServerClient, report: Report) -> None:
    """A session begins, and every reply has the right score."""
    assert asked(client, "/seed_session", ROWS[0]) == {}
    replies = [
        BaseVerifyResponse.model_validate(asked(client, "/verify", body_of(row, reply)))
        for row, (reply, _) in zip(ROWS, REPLIES, strict=True)
    ]

    assert [worth for _, worth in REPLIES] == [reply.reward for reply in replies]
    report(len(replies), "/verify by its client and configuration")


def test_failure(client: ServerClient, report: Report) -> None:
    """What has no score has a failure class, by which the collector sets it aside."""
    reply = asked(client, "/verify", body_of(ROWS[0], "#### 35"), headers={HEADER: "0"})

    assert (reply["_ng_failure_class"], reply["mask_sample"]) == ("judge_failed", True)
    report(1, "a failure has its class")


def test_figures(client: ServerClient, report: Report) -> None:
    """`/aggregate_metrics` gives what Gym's own server computes of the same responses."""
    verified = [
        {"_ng_task_index": task, "_ng_rollout_index": rollout, "reward": worth, "correct": worth > 0.5, "note": "n"}
        | ({"response": {"usage": {"total_tokens": 10 * task + rollout}}} if rollout else {})
        for task, worths in enumerate([(0.0, 1.0, 0.25), (1.0, 1.0, 0.0), (0.125,)])
        for rollout, worth in enumerate(worths)
    ]
    body = AggregateMetricsRequest(verify_responses=verified).model_dump()
    found = AggregateMetrics.model_validate(asked(client, "/aggregate_metrics", body)).model_dump()
    own = json.loads(compute_aggregate_metrics(verified).model_dump_json())

    leaves, expected = flat(found), flat(own)
    assert set(leaves) == set(expected)
    for path, leaf in expected.items():
        assert leaves[path] == (pytest.approx(leaf, rel=1e-12) if isinstance(leaf, float) else leaf), path
    report(len(verified), "/aggregate_metrics as its own server has them")


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every leaf by its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        return {path: value}
    return {name: leaf for key, one in items for name, leaf in flat(one, f"{path}/{key}").items()}
