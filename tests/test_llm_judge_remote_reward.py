"""Tries the judge's reward function: what it does with any server, without one, and with one that is there.

    python tests/test_llm_judge_remote_reward.py [--server-url URL | --skip-server-tests]

Needs the package rewardstack alone. Under pytest the judge is the one real vLLM of the test run.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rewardstack
from rewardstack.errors import ConfigError, ScoringError
from rewardstack.settings import DEFAULTS

MODULE = Path(rewardstack.__file__).with_name("llm_judge_remote.py")
SOURCE = "llm_judge_remote_test"
PROBLEM = "What is 2 + 2?"
TIMEOUT = 0.5  # expires
"""Seconds that a test waits for a judge that is not there."""
DETAILS = {"score", "acc", "ok", "fallback", "unscored", "failed", "cached", "latency_ms", "label_mass"}


def load_by_path() -> Any:
    """The reward function's file as verl loads it: a module of its own."""
    spec = importlib.util.spec_from_file_location("custom_reward", MODULE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compute_score = load_by_path().compute_score
compute_score_batched = load_by_path().compute_score_batched


def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


class Heard(logging.Handler):
    """Keeps what rewardstack warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def __enter__(self) -> Heard:
        logging.getLogger("rewardstack").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("rewardstack").removeHandler(self)


def test_unreachable() -> None:
    """Where no judge answers, the reward is 0.0 and a warning says why."""
    extra = {"problem": PROBLEM, "server_url": nobody(), "timeout": TIMEOUT}
    with Heard() as heard:
        assert compute_score(SOURCE, "4", "4", extra) == 0.0
    assert any("failed" in line for line in heard.lines), heard.lines


def test_unreachable_batch() -> None:
    """A whole batch then costs one warning, within the timeout, and training continues."""
    extra = {"problem": PROBLEM, "server_url": nobody(), "timeout": TIMEOUT}
    with Heard() as heard:
        assert (
            compute_score_batched([SOURCE] * 50, [f"{at}" for at in range(50)], ["4"] * 50, [extra] * 50) == [0.0] * 50
        )
    assert len([line for line in heard.lines if "samples failed" in line]) == 1, heard.lines


def test_failure_is_told_from_zero() -> None:
    """A failure is no verdict: `details` tells it, and `on_error="raise"` raises."""
    extra = {"problem": PROBLEM, "server_url": nobody(), "timeout": TIMEOUT}
    details = compute_score(SOURCE, "4", "4", extra, details=True)
    assert set(details) == DETAILS
    assert (details["score"], details["ok"], details["failed"]) == (0.0, 0.0, 1.0)
    try:
        compute_score(SOURCE, "4", "4", extra, on_error="raise")
    except ScoringError as error:
        assert error.scores[0].status == "failed"
    else:
        raise AssertionError("nothing was raised")


def test_empty_answer() -> None:
    """An empty answer scores 0: that is a verdict, with or without a judge."""
    details = compute_score(SOURCE, " \n", "4", {"problem": PROBLEM, "server_url": nobody()}, details=True)
    assert (details["score"], details["ok"]) == (0.0, 1.0)


def test_malformed_options() -> None:
    """An option that cannot be used leaves its sample unscored."""
    for extra in ({"temperature": -1}, {"prompt_template": "no such template"}, {"max_new_tokens": "many"}):
        asked = {**extra, "server_url": nobody(), "timeout": TIMEOUT}
        details = compute_score(SOURCE, "4", "4", asked, details=True)
        assert (details["score"], details["unscored"]) == (0.0, 1.0), extra


def test_no_server_is_an_error() -> None:
    """Where no judge is named at all, the error names the variable to set."""
    try:
        compute_score(SOURCE, "4", "4", {"problem": PROBLEM})
    except ConfigError as error:
        assert "LLM_JUDGE_SERVER_URL" in str(error)
    else:
        raise AssertionError("nothing was raised")


def test_lengths() -> None:
    """Lists of different lengths are the caller's fault."""
    try:
        compute_score_batched([SOURCE] * 2, ["4", "5"], ["4"], [{}, {}])
    except ConfigError as error:
        assert "ground_truth" in str(error)
    else:
        raise AssertionError("nothing was raised")


def server_single(extra: dict[str, Any]) -> None:
    """One sample gets a reward from 0 to 1."""
    assert 0 <= compute_score(SOURCE, "2 + 2 = 4", "4", extra) <= 1


def server_batch(extra: dict[str, Any]) -> None:
    """A batch gets as many, in both ways of writing it."""
    solutions, references = ["2 + 2 = 4", "2 + 2 = 5"], ["4", "4"]
    batch = compute_score_batched([SOURCE] * 2, solutions, references, [extra] * 2)
    plural = compute_score(
        data_sources=[SOURCE] * 2, solution_strs=solutions, ground_truths=references, extra_infos=[extra] * 2
    )
    assert batch == plural and len(batch) == 2 and all(0 <= value <= 1 for value in batch)


def server_templates(extra: dict[str, Any]) -> None:
    """Each built-in template works; a custom one at least says why it has no verdict."""
    for template in ("default", "binary", "points"):
        details = compute_score(SOURCE, "4", "4", {**extra, "prompt_template": template}, details=True)
        assert details["ok"] == 1.0, template
    own = "{PROBLEM} {REFERENCE_SOLUTION} {CANDIDATE_SOLUTION}\nREWARD: <score>"
    for template in ("detailed", own):
        freely = {**extra, "prompt_template": template, "max_new_tokens": 64}
        details = compute_score(SOURCE, "4", "4", freely, details=True)
        assert details["ok"] + details["failed"] == 1.0, template


def server_references(extra: dict[str, Any]) -> None:
    """The best of several references counts; a filter leaves one of them."""
    best = compute_score(SOURCE, "4", ["a horse", "4"], extra)
    filtered = [compute_score(SOURCE, "4", ["a horse", "4"], {**extra, "target_gt": one}) for one in ("a horse", "4")]
    assert best == max(filtered)
    by_token = {**extra, "filter_gt_by_prompt_token": True, "prompt": "the answer is 4"}
    assert compute_score(SOURCE, "4", ["a horse", "4"], by_token) == filtered[1]


WITHOUT_SERVER: tuple[Callable[[], None], ...] = (
    test_unreachable,
    test_unreachable_batch,
    test_failure_is_told_from_zero,
    test_empty_answer,
    test_malformed_options,
    test_no_server_is_an_error,
    test_lengths,
)
WITH_SERVER = (server_single, server_batch, server_templates, server_references)


def pytest_generate_tests(metafunc: Any) -> None:
    """A test for each of those that need a server."""
    if "with_server" in metafunc.fixturenames:
        metafunc.parametrize("with_server", WITH_SERVER, ids=lambda one: one.__name__)


def test_with_server(with_server: Callable[[dict[str, Any]], None], vllm: Any) -> None:
    """Those that need a judge pass with the real one of the test run."""
    with_server({"problem": PROBLEM, "server_url": vllm.url, "temperature": 0})


def setup_function(_: object) -> None:
    """Nothing of the developer's own environment reaches a test."""
    forget_environment()


def forget_environment() -> None:
    """No judge, cache or key is set any more."""
    for name in DEFAULTS:
        os.environ.pop(name, None)


def main() -> int:
    """Runs every test; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LLM_JUDGE_SERVER_URL", "http://localhost:8000")
    parser.add_argument("--server-url", default=default, help=f"of the judge ({default})")
    parser.add_argument("--skip-server-tests", action="store_true", help="only those that need no judge")
    arguments = parser.parse_args()
    extra = {"problem": PROBLEM, "server_url": arguments.server_url, "temperature": 0}
    extra["api_key"] = os.environ.get("LLM_JUDGE_SERVER_API_KEY", "")
    forget_environment()
    logging.getLogger("rewardstack").addHandler(logging.NullHandler())
    failed = [test.__name__ for test in WITHOUT_SERVER if not _passes(test)]
    if not arguments.skip_server_tests:
        failed += [test.__name__ for test in WITH_SERVER if not _passes(test, extra)]
    print(f"FAILED: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def _passes(test: Callable[..., None], *arguments: Any) -> bool:
    try:
        test(*arguments)
    except (AssertionError, ConfigError) as error:
        print(f"FAILED  {test.__name__}: {type(error).__name__}: {error}")
        return False
    print(f"passed  {test.__name__}: {str(test.__doc__).strip()}")
    return True


if __name__ == "__main__":
    sys.exit(main())
