"""What is loaded when: a trainer that imports the client pays for what it uses."""

from __future__ import annotations

import pytest

from tests.client.conftest import Script
from tests.support.servers import FaultServer

pytestmark = pytest.mark.usefixtures("needs_process")

HEAVY = "aiohttp numpy redis asyncio"
LOADED = """
    def loaded():
        import sys
        own = [name for name in sys.modules if name.partition(".")[0].startswith("rewardstack")]
        return len(own), " ".join(name for name in "{HEAVY}".split() if name in sys.modules)
""".replace("{HEAVY}", HEAVY)

IMPORT = f"""{LOADED}
    import rewardstack
    print(*loaded())
"""

RULE = f"""{LOADED}
    import rewardstack
    assert rewardstack.compute_score("math", "abc", "1", {{"index": 7}}) == 3.0
    print(*loaded())
"""

NUMPY = """
    from rewardstack.core.json_types import is_array, plain
    assert not is_array([1])
    import numpy
    assert is_array(numpy.array([1])) and plain(numpy.float32(0.1)) == 0.1 and plain(numpy.array([[1]])) == [[1]]
    print("read")
"""

FORK_WHILE_LOADING = """
    import importlib.abc, os, signal, sys, threading, time
    import rewardstack

    loading, forking = threading.Event(), threading.Event()

    class Slow(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == "rewardstack.pipeline.pipeline" and threading.current_thread() is not threading.main_thread():
                loading.set()
                forking.wait(60)
                time.sleep(0.2)

    sys.meta_path.insert(0, Slow())
    first = threading.Thread(target=rewardstack.compute_score, args=("math", "a"))
    first.start()
    assert loading.wait(60)
    forking.set()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if rewardstack.compute_score("math", "abc") == 3.0 else 1)
    first.join()
    assert os.waitpid(child, 0)[1] == 0
    print("done")
"""


def test_import_loads_the_api_alone(run_script: Script) -> None:
    """`import rewardstack` loads at most 40 of our modules, and neither aiohttp, NumPy, Redis nor asyncio."""
    count, *heavy = run_script(IMPORT).split()
    assert int(count) <= 40 and heavy == []


def test_a_rule_loads_no_judge(server: FaultServer, run_script: Script) -> None:
    """After a sample that a reward server scored, at most 72 of our modules are loaded, and neither NumPy nor Redis."""
    count, *heavy = run_script(RULE).split()
    assert int(count) <= 72 and heavy == ["aiohttp", "asyncio"]


def test_numpy_is_read_once_it_is_loaded(run_script: Script) -> None:
    """Arrays and scalars are recognized although the client does not import NumPy, whenever the caller does."""
    assert run_script(NUMPY) == "read"


def test_fork_during_the_first_call(server: FaultServer, run_script: Script) -> None:
    """A process forked while another thread's first call loads the client can score."""
    assert run_script(FORK_WHILE_LOADING) == "done"
