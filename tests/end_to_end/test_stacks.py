"""The check of a whole stack against what `make up` starts, as local processes and in containers."""

from __future__ import annotations

import os
import shlex
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.models.environment import Models
from services.stack.rundir import ROOT
from tests.end_to_end.conftest import ALL, REWARD_MODEL, addresses, check, said
from tests.native.tree import Tree
from tests.support.compose import of_this_machine
from tests.support.servers import free_port
from tests.support.vllm import DTYPE, make_reward_models

MODELS = Models(ROOT / os.environ.get("MODELS_DIR", ".models"))
STARTING_SECONDS = 900
PASSWORD = "cache-password"
KEYS = {
    "REWARD_SERVER_API_KEY": "reward-key-of-the-tests",
    "LLM_JUDGE_SERVER_API_KEY": "judge-key-of-the-tests",
    "EMBEDDING_SERVER_API_KEY": "embedding-key-of-the-tests",
}
"""Of clients; the stack asks for the same ones."""
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]


@contextmanager
def made(folder: Path, **settings: str) -> Iterator[Tree]:
    """What `make up` starts, with judge, embedding server, keys and a published cache; gone afterwards."""
    tree = Tree(folder / "tree", STARTING_SECONDS)
    tree.environment |= {
        **KEYS,
        "REWARD_SERVER_API_KEYS": f"{KEYS['REWARD_SERVER_API_KEY']},another-key-of-the-tests",
        "CACHE_PASSWORD": PASSWORD,
        "CACHE_PORT": str(free_port()),
    }
    tree.environment |= {"JUDGE": "on", "EMBEDDING": "on", **settings}
    try:
        result = tree.run("up")
        assert result.returncode == 0, result.stdout
        yield tree
    finally:
        tree.run("clean")


def require_all(tree: Tree, stop: list[str], start: list[str]) -> None:
    """All that is checked holds and nothing is left out, a trainer's own cache and an outage of the judge among it.

    Args:
        tree: of which a stack runs.
        stop: command that stops the judge.
        start: command that starts it again.
    """
    has_reward_model = "REWARD_MODEL_ID" in tree.environment
    done = check(
        *ALL,
        *(REWARD_MODEL if has_reward_model else ()),
        f"--stop-judge={shlex.join(stop)}",
        f"--start-judge={shlex.join(start)}",
        **addresses(tree.environment),
        REWARD_CACHE_URL=f"redis://:{PASSWORD}@127.0.0.1:{tree.environment['CACHE_PORT']}/0",
        **KEYS,
        **({"REWARD_MODEL_SERVER_API_KEY": KEYS["LLM_JUDGE_SERVER_API_KEY"]} if has_reward_model else {}),
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("needs_stack", "needs_model")
def test_local_processes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything holds of the native stack with a judge, an embedding server and a reward model."""
    models = make_reward_models(tmp_path_factory.mktemp("models"))
    settings = {"STACK": "native", "MODELS_DIR": str(MODELS.folder.resolve()), "JUDGE_DTYPE": DTYPE}
    settings["REWARD_MODEL_ID"] = str(models / "one-label")
    with made(tmp_path_factory.mktemp("native"), **settings) as tree:
        control = [sys.executable, "-m", "supervisor.supervisorctl", "-s", f"unix://{tree.path}/.run/supervisor.sock"]
        require_all(tree, [*control, "stop", "judge"], [*control, "start", "judge"])


@pytest.mark.usefixtures("needs_model_images", "needs_model")
def test_containers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything holds of the stack in containers; from within its image every service answers."""
    name = f"rewardstack-{uuid.uuid4().hex[:8]}"
    settings = {"STACK": "compose", "COMPOSE_PROJECT_NAME": name, "JUDGE_DTYPE": DTYPE, **of_this_machine()}
    with made(tmp_path_factory.mktemp("containers"), **settings) as tree:
        judge = f"{name}-judge-1"
        require_all(tree, ["docker", "stop", judge], ["docker", "start", judge])
        inside = ["docker", "exec", f"{name}-rules-1", "rewardstack", "check"]
        done = said(inside, **os.environ)
        assert done.returncode == 0, done.stdout
