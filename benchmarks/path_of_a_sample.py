"""Count the files and functions that one sample passes through in the code, and the objects that carry it.

    python benchmarks/path_of_a_sample.py

Sends samples one by one over HTTP, without a result cache: `math` samples that need no algebra to a reward server, and
judge samples to a fake judge (`slow_judge`). The first samples warm up both sides. For the last sample of each kind, a
profiler records the calls and returns of the project's functions by thread: in the client and, for `math`, also in the
reward server. A change of file is a call or return that leads to a different file; suspending and resuming a coroutine
does not count. The objects are those of the project's classes that are alive when aiohttp is called to send the
request, and were not before the sample.
"""

from __future__ import annotations

import argparse
import dis
import gc
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.judge_load import slow_judge  # noqa: E402
from tests.support.servers import free_port  # noqa: E402
from tests.support.waiting import eventually  # noqa: E402

PACKAGES = tuple(f"{ROOT}/{folder}/" for folder in ("client", "verifier", "cli", "services/rules"))
OWN = ("rewardstack", "rewardstack_rules", "rewardstack_verifier")
WARMING = 3
SETTLE_SECONDS = 0.5
"""Seconds to wait for background work after a reply."""
COROUTINES = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
PAUSES = {dis.opmap[name] for name in ("YIELD_VALUE", "RETURN_GENERATOR") if name in dis.opmap}
"""Instructions that suspend or create a coroutine."""
RULE = "math", "So the area is \\boxed{42}.", "42"
JUDGE = "llm_judge_remote_path", "So the area is 42.", "42", {"problem": "What is 6 times 7?"}


class Passed(NamedTuple):
    """What a sample passed through on one side.

    Args:
        visits: the number of visits to each file, by its path in its package's folder.
        functions: the number of functions.
        objects: the number of live objects of each class when the request is sent; empty in the server.
    """

    visits: dict[str, int]
    functions: int
    objects: dict[str, int]


class Trace:
    """Records what the current thread and all threads that start later pass through."""

    def __init__(self) -> None:
        self._is_recording = False
        self._visits: dict[int, list[str]] = {}
        self._functions: set[CodeType] = set()
        self._before: set[int] = set()
        self._objects: dict[str, int] = {}
        self._paused: set[int] = set()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def begin(self, *_: Any) -> None:
        """Discard what was recorded and start recording."""
        self._visits.clear()
        self._functions.clear()
        self._objects = {}
        self._before = {id(one) for one in _own_objects()}
        self._is_recording = True

    def end(self) -> Passed:
        """Stop recording and return what was recorded since `begin`."""
        self._is_recording = False
        visits = Counter(_short(file) for visits in self._visits.values() for file in visits if file)
        return Passed(visits, len(self._functions), self._objects)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if not self._is_recording or not self._is_step(frame, event):
            return
        at = frame if event == "call" else frame.f_back
        if event == "call" and frame.f_code.co_name == "_request" and frame.f_globals["__name__"] == "aiohttp.client":
            new = (type(one).__name__ for one in _own_objects() if id(one) not in self._before)
            self._objects = dict(Counter(new))
        if at is None or not at.f_code.co_filename.startswith(PACKAGES):
            return
        self._functions.add(at.f_code)
        visits = self._visits.setdefault(threading.get_ident(), [""])
        if visits[-1] != at.f_code.co_filename:
            visits.append(at.f_code.co_filename)

    def _is_step(self, frame: FrameType, event: str) -> bool:
        """Return whether an event counts: the start or end of a function, not a coroutine that suspends or resumes."""
        code, waits = frame.f_code, id(frame)
        if event == "return":
            if code.co_code[frame.f_lasti] in PAUSES:
                self._paused.add(waits)
                return False
            self._paused.discard(waits)
            return True
        return event == "call" and waits not in self._paused and not (code.co_flags & COROUTINES and frame.f_lasti < 0)


def main() -> None:
    """Print what a sample passes through on each side: files and objects, most frequent first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", nargs=2, metavar=("PORT", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        _serve(*arguments.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        for side, (visits, functions, objects) in _traced(Path(folder) / "server.json").items():
            changes, alive = sum(visits.values()), sum(objects.values())
            print(
                f"{side}: {len(visits)} files, {functions} functions, {alive} live objects, {changes} changes of file"
            )
            for name, count in sorted({**visits, **objects}.items(), key=lambda one: -one[1]):
                print(f"{count:6} {name}")


def _serve(port: str, output: str) -> None:
    """Run a reward server that starts recording at SIGUSR1 and writes the visits to `output` at SIGUSR2."""
    trace = Trace()
    signal.signal(signal.SIGUSR1, trace.begin)
    signal.signal(signal.SIGUSR2, lambda *_: Path(output).write_text(json.dumps(trace.end())))
    from werkzeug.serving import make_server

    from rewardstack_rules.http.app import create_app

    make_server("127.0.0.1", int(port), create_app(), threaded=True).serve_forever()


def _traced(output: Path) -> dict[str, Passed]:
    """Score both samples and return what they passed through, by side."""
    port = free_port()
    without = {"REWARD_CACHE_ITEMS": "0", "REWARD_CACHE_URL": ""}
    os.environ |= {**without, "REWARD_SERVER_URL": f"http://127.0.0.1:{port}"}
    server = subprocess.Popen([sys.executable, __file__, "--serve", str(port), str(output)], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(port))
        trace = Trace()
        client = _client_side(trace, RULE, lambda: server.send_signal(signal.SIGUSR1))
        server.send_signal(signal.SIGUSR2)
        eventually(output.exists)
        time.sleep(SETTLE_SECONDS)
        with slow_judge(0.0) as (url, _):
            os.environ["LLM_JUDGE_SERVER_URL"] = url
            judge = _client_side(trace, JUDGE)
        rule = {"rule, client": client, "rule, server": Passed(*json.loads(output.read_text()))}
        return {**rule, "judge, client": judge}
    finally:
        server.terminate()
        server.wait()


def _client_side(trace: Trace, sample: Sequence[Any], begin: Callable[[], None] = lambda: None) -> Passed:
    """Warm up, call `begin`, score a sample, and return what it passed through in the client."""
    from rewardstack import compute_score

    for _ in range(WARMING):
        compute_score(*sample, on_error="raise")
    time.sleep(SETTLE_SECONDS)
    begin()
    time.sleep(SETTLE_SECONDS)
    trace.begin()
    compute_score(*sample, on_error="raise")
    time.sleep(SETTLE_SECONDS)
    return trace.end()


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health"):
            return True
    except OSError:
        return False


def _short(file: str) -> str:
    """Return the path of a file relative to its package's folder."""
    return next(file.removeprefix(one) for one in PACKAGES if file.startswith(one))


def _own_objects() -> list[Any]:
    """Return the live objects of the project's classes, but not the classes themselves."""
    return [
        one
        for one in gc.get_objects()
        if str(type(one).__module__).partition(".")[0] in OWN and not isinstance(one, type)
    ]


if __name__ == "__main__":
    main()
