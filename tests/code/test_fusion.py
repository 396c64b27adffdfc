"""SandboxFusion runs programs in place of the server's own sandbox; its faults are never scores."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.code.cases import EXPECTED, sample
from tests.code.test_languages import ADD as CPP_ADD
from tests.code.test_languages import TESTLIB, cpp
from tests.code.test_scores import ADD, CASES, ONE, SUM, TREE, TREE_TESTS
from tests.rules.conftest import RewardServer, clean_environment, running
from tests.support.sandbox_fusion import Fusion, sandbox_fusion
from tests.support.servers import free_port
from tests.support.table import Table

DEADLINE = {"X-Request-Deadline-Ms": "3000"}  # expires, as nothing listens
BEFORE_THE_WAIT = {"X-Request-Deadline-Ms": "20000"}
"""Ends before `fusion.REQUEST_SLACK` does, for which a server waits while connections are refused."""
KILL_DRIVER = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(9)"
FORGE = f"""
import os
report = '{{"status": 0, "used": 0, "peak": 0, "killed": ""}}'
os.write(os.open(f"/proc/{{os.getppid()}}/fd/1", os.O_WRONLY), report.encode())
{KILL_DRIVER}
"""
OTHERS: dict[str, tuple[dict[str, Any], str, float]] = {
    "C++": (cpp(CPP_ADD, SUM), "", 2),
    "C++ that is wrong": (cpp("int main() {}", SUM), "test 1 of 2: wrong answer", 0),
    "C++ that does not compile": (cpp("int main() { x }", SUM), "compile error: main.cpp:1:14: error", 0),
    "a long output": (sample("print('é' * 2_000_000)", {"inputs": [""], "outputs": ["é" * 2_000_000]}), "", 1),
    "a long input": (sample("print(len(input()))", {"inputs": ["x" * 2_000_000], "outputs": ["2000000"]}), "", 1),
    "bytes that are no text": (sample("import sys; sys.stdout.buffer.write(b'\\xff')", ONE), "wrong answer", 0),
    "the environment": (sample("import os; print(int('SECRET_KEY' not in os.environ))", ONE), "", 1),
    "the same hash": (sample("print(hash('a') % 97)", {"inputs": ["", ""], "outputs": ["0", "0"]}), "1 of 2: wrong", 0),
    "an output that is deleted": (sample("import os; print(1, flush=True); os.unlink('2')", ONE), "wrong answer", 0),
    "a report of its own": (sample("print('{\"status\": 0}'); 1 / 0", ONE), "runtime error", 0),
}


class Site(NamedTuple):
    """A reward server, and the SandboxFusion that it uses."""

    fusion: Fusion
    server: RewardServer

    def score(self, program: str, tests: Any, headers: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
        """Return the score of a program that no cache has."""
        [score] = self.server.score(sample(f"{program}\n# {uuid.uuid4()}", tests, **options), headers=headers or {})
        return score


@pytest.fixture(scope="module")
def one_site(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site; its server may use several processes."""
    folder, more = tmp_path_factory.mktemp("fusion"), {"CODE": "on", "CODE_PROCESSES": 2, "CODE_TIMEOUT": 20}
    with (
        sandbox_fusion() as fusion,
        running(folder, "--workers", "1", SANDBOX_FUSION_URL=f"{fusion.url}/run_code", **more) as server,
    ):
        yield Site(fusion, server)


@pytest.fixture
def site(one_site: Site) -> Site:
    """A site without faults."""
    one_site.fusion.faults.clear()
    one_site.fusion.asked.clear()
    one_site.fusion.always = None
    return one_site


@pytest.mark.nightly
def test_scores(site: Site, table: Table) -> None:
    """Programs have the scores, parts and reasons that they have in the server's own sandbox."""
    cases = {
        name: (item, reason, passed)
        for name, (item, (_, passed, reason)) in CASES.items()
        if isinstance(item["ground_truth"], dict) and "inputs" in item["ground_truth"]
    }
    assert len(cases) > 10
    every = cases | OTHERS
    scores = site.server.score(*(item for item, _, _ in every.values()))
    for (name, (_, reason, passed)), score in zip(every.items(), scores, strict=True):
        with table.case(name):
            assert score["status"] == "ok" and reason in score["reason"] and bool(reason) == bool(score["reason"]), (
                score
            )
            assert score["details"]["parts"]["passed"] == passed, score


def test_requests(site: Site) -> None:
    """There is one request per test until the first failure, and none of them has an expected output."""
    tests = {"inputs": ["1", "2", "3"], "outputs": ["1", EXPECTED, "3"]}
    assert site.score("print(input())", tests)["reason"] == "test 2 of 3: wrong answer"
    assert len(site.fusion.asked) == 2
    assert site.score("print(input())", tests, score="share")["details"]["parts"]["passed"] == 2
    assert len(site.fusion.asked) == 5
    for body in site.fusion.asked:
        files = b"".join(map(base64.b64decode, body["files"].values()))
        assert EXPECTED.encode() not in files and EXPECTED not in json.dumps(body)


def test_not_sent(site: Site, table: Table) -> None:
    """Test programs and checkers, which hold expected results, are `unscored`, and nothing is sent."""
    checker = {**SUM, "checker": TESTLIB}
    for name, item in {"asserts": sample(TREE, TREE_TESTS), "checker": sample(ADD, checker)}.items():
        with table.case(name):
            [score] = site.server.score(item)
            assert (score["status"], score["field"]) == ("unscored", "ground_truth")
            assert "CODE=on and without SANDBOX_FUSION_URL" in score["reason"]
    assert site.fusion.asked == []


@pytest.mark.parametrize(
    "fault", [500, 503, "SandboxError", "late", "", "<html>Bad gateway</html>", '{"status": "Success"}']
)
def test_passing_fault(site: Site, fault: int | str) -> None:
    """A fault that does not last changes no score."""
    site.fusion.faults += [fault]
    assert (site.score(ADD, SUM)["value"], len(site.fusion.asked)) == (1.0, 3)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (422, "422"),
        (500, "500"),
        ("SandboxError", "SandboxFusion failed: "),
        ("late", "SandboxFusion stopped the program"),
        ("", "the body is empty"),
        ("<html>Bad gateway</html>", "Bad gateway"),
        ("[1]", "not a reply of SandboxFusion"),
        ('{"status": "Success", "message": "", "run_result": null, "files": {}}', "not a reply of SandboxFusion"),
    ],
)
def test_lasting_fault(site: Site, fault: int | str, reason: str) -> None:
    """A fault that lasts is `failed`, never a score; the reason shows no program."""
    site.fusion.always = fault
    score = site.score("print('s3cret')", SUM)
    assert score["status"] == "failed" and reason in score["reason"] and "test 1" in score["reason"], score
    assert "s3cret" not in score["reason"]


def test_killed_driver(site: Site) -> None:
    """A program that kills its driver is `failed`, whatever it prints in the driver's name, and after a second run."""
    for program in (KILL_DRIVER, FORGE):
        site.fusion.asked.clear()
        score = site.score(f"print(1, flush=True)\n{program}", ONE)
        assert score["status"] == "failed" and "did not run the program to its end" in score["reason"], score
        assert len(site.fusion.asked) == 2


def test_overload(start: Callable[..., RewardServer]) -> None:
    """A SandboxFusion that stays overloaded is `failed`, without a wait beyond the deadline."""
    with sandbox_fusion() as fusion:
        fusion.always, fusion.retry_after = 503, 900
        [score] = start(SANDBOX_FUSION_URL=fusion.url, CODE_PROCESSES=1).score(sample(ADD, SUM))
    assert score["status"] == "failed" and "Retry-After" in score["reason"], score


def test_deadline(start: Callable[..., RewardServer]) -> None:
    """A request ends by its deadline while connections are refused."""
    server = start("--workers", "1", SANDBOX_FUSION_URL=f"http://127.0.0.1:{free_port()}", CODE_PROCESSES=1)
    [score] = server.score(sample(ADD, SUM), headers=DEADLINE)
    assert score["status"] == "failed" and "not scored before its deadline" in score["reason"], score


@pytest.mark.nightly
def test_refused(start: Callable[..., RewardServer]) -> None:
    """If connections are refused, samples are `failed` with the reason; later ones do not wait."""
    server = start("--workers", "1", SANDBOX_FUSION_URL=f"http://127.0.0.1:{free_port()}", CODE_PROCESSES=1)
    for headers in ({}, BEFORE_THE_WAIT):
        [score] = server.score(sample(ADD, SUM), headers=headers)
        assert score["status"] == "failed" and "refused" in score["reason"], score


def test_several(start: Callable[..., RewardServer]) -> None:
    """Where one of several servers is down, the others run its programs; an explanation says where they run."""
    with sandbox_fusion() as fusion:
        urls = f"http://127.0.0.1:{free_port()},{fusion.url}"
        server = start("--workers", "1", SANDBOX_FUSION_URL=urls, CODE_PROCESSES=1)
        scores = server.score(*(sample(f"{ADD} # {at}", SUM) for at in range(4)))
        assert [score["value"] for score in scores] == [1.0] * 4
        text = server.get("/metrics").text
        assert 'rewardstack_code_tests_total{verdict="passed"} 8.0' in text
        explained = server.post("/v1/explain", {**sample(ADD, SUM), "rescore": True}).json()
        assert "by SandboxFusion" in json.dumps(explained), explained


def test_trainer(needs_process: None) -> None:
    """A trainer without a reward server uses SandboxFusion itself."""
    with sandbox_fusion() as fusion:
        command = [
            sys.executable,
            "-c",
            "import sys, rewardstack; print(rewardstack.compute_score('code', *sys.argv[1:]))",
        ]
        done = subprocess.run(
            [*command, f"```python\n{ADD}\n```", json.dumps(SUM)],
            env=clean_environment(SANDBOX_FUSION_URL=fusion.url),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.stdout.strip() == "1.0" and len(fusion.asked) == 2, done.stderr


def test_two_sandboxes() -> None:
    """A server with both kinds of sandboxes does not start, and names the two settings."""
    urls = {"SANDBOX_FUSION_URL": "http://fusion.example:8080", "CODE_SANDBOX_URL": "http://sandbox.example:6000"}
    done = subprocess.run(
        [sys.executable, "-m", "rewardstack_rules.run_reward_server", "--port", str(free_port())],
        env=clean_environment(**urls),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "SANDBOX_FUSION_URL and CODE_SANDBOX_URL are both set" in done.stdout + done.stderr
