"""Forks: parent and child share no connection, no loop and no epoll instance."""

from __future__ import annotations

import pytest

from tests.client.conftest import Script
from tests.support.servers import FaultServer

pytestmark = pytest.mark.usefixtures("needs_process")

BOTH_SCORE = """
    import os, sys, gc
    from rewardstack import Request, score
    from rewardstack.transport import timing
    timing.MIN_STUCK = 3600.0  # no hedges, which a busy machine would cause

    def scored(name):
        scores = score([Request("math", f"{name} {at}") for at in range(200)])
        assert all(one.status == "ok" and one.value == len(f"{name} {at}") for at, one in enumerate(scores)), scores

    scored("before")
    child = os.fork()
    if child == 0:
        scored("child")
        gc.collect()
        sys.exit(0)
    for round in range(3):
        scored(f"parent {round}")
    assert os.waitpid(child, 0)[1] == 0
    scored("afterwards")
    print("done")
"""

CHILD_FINALISES = """
    import gc, logging, os, warnings
    import aiohttp
    from rewardstack import Request, score

    def status(text):
        return score([Request("math", text, None, {"timeout": 60})])[0].status

    assert "ok" == status("before")
    child = os.fork()
    if child == 0:
        warnings.simplefilter("ignore")
        logging.disable()
        for one in gc.get_objects():
            if isinstance(one, aiohttp.BaseConnector):
                one.__del__()
        os._exit(0)
    os.waitpid(child, 0)
    assert "ok" == status("on the connection that was idle")
    print("done")
"""

MANY_CHILDREN = """
    import multiprocessing
    from rewardstack import compute_score

    def one(at):
        return compute_score("math", "x" * at)

    if __name__ == "__main__":
        assert compute_score("math", "xx") == 2.0
        with multiprocessing.get_context("fork").Pool(4) as pool:
            assert pool.map(one, range(1, 201)) == [float(at) for at in range(1, 201)]
        assert compute_score("math", "xxx") == 3.0
        print("done")
"""


def test_fork_with_an_idle_connection(server: FaultServer, run_script: Script) -> None:
    """With an idle connection in the pool at the fork, parent and child both score, and each sample goes out once."""
    assert "done" == run_script(BOTH_SCORE)
    assert [] == server.stats()["twice"]


def test_child_that_finalises_what_it_inherited(server: FaultServer, run_script: Script) -> None:
    """A child that finalises the inherited connections leaves the parent's idle connection usable."""
    assert "done" == run_script(CHILD_FINALISES)


def test_pool_of_forked_workers(server: FaultServer, run_script: Script) -> None:
    """Workers of a forked pool each score on a loop of their own."""
    assert "done" == run_script(MANY_CHILDREN)
