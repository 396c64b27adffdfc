"""`docs/jobs.md` and the server's own document hold: commands work as printed, requests are answered as described."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rewardstack_rules.http.openapi import OPERATIONS
from rewardstack_rules.jobs.metrics import COUNTERS
from rewardstack_rules.jobs.state import JOB_STATUSES
from tests.jobs.conftest import Site
from tests.rules.conftest import ROOT
from tests.rules.test_documentation import assert_within, environment
from tests.support.servers import free_port
from tests.support.snippets import block, blocks_of, staying

TEXT = (ROOT / "docs" / "jobs.md").read_text()
BLOCKS = blocks_of("docs/jobs.md")
SETUP = "rewardstack submit", "redis-server"
REQUESTS = 80


def test_commands(jobs: Site, tmp_path: Path) -> None:
    """Run one after the other, as a reader would, they do what the document says."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    definition = ""
    for at, (language, body) in enumerate(BLOCKS):
        if language != "bash" or body.startswith(SETUP):
            continue
        command = definition + body.replace("http://localhost:6000", jobs.server.url)
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
        )
        if body.startswith("JOB="):
            definition = body.splitlines()[0] + "\n"
        if "tee job.json" in body:
            jobs.end_of(json.loads(done.stdout)["job_id"])
        assert json.loads(done.stdout.splitlines()[0]).get("error") is None
        if at + 1 < len(BLOCKS) and BLOCKS[at + 1][0] == "json":
            assert_within(values(BLOCKS[at + 1][1]), values(done.stdout))


def test_submit(jobs: Site, tmp_path: Path) -> None:
    """The command by which people have a file scored writes a row for each of its rows, all with a score."""
    commands = {block(page, "bash", "rewardstack submit") for page in ("docs/jobs.md", "docs/cli.md")}
    for at, command in enumerate(sorted(commands)):
        (folder := tmp_path / f"{at}").mkdir()
        shutil.copy(ROOT / "examples" / "samples.jsonl", folder / "rollouts.jsonl")
        variables = {**environment(), "REWARD_SERVER_URL": jobs.server.url}
        subprocess.run(["bash", "-c", command], cwd=folder, env=variables, check=True)
        before, after = (len((folder / f"{name}.jsonl").read_text().splitlines()) for name in ("rollouts", "scored"))
        assert before == after > 0


def test_by_hand(tmp_path: Path) -> None:
    """The queue and a worker start by the commands that are given, each in a shell of its own."""
    port = free_port()
    queue, *worker = block("docs/jobs.md", "bash", "redis-server").replace("6380", str(port)).splitlines()
    with (
        staying(queue, "Ready to accept connections", tmp_path / "queue.log", tmp_path, environment()),
        staying("\n".join(worker), '"Running as ', tmp_path / "worker.log", tmp_path, environment()),
    ):
        pass


def values(text: str) -> list[object]:
    """The JSON values in a text, one after the other."""
    found, rest = [], text.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found


@pytest.mark.nightly
def test_generated_requests(jobs: Site) -> None:
    """No request to the jobs is answered by 500, or otherwise than the server's own document says."""
    from tests.rules.fuzz import Fuzzer  # takes a second

    fuzzer = Fuzzer(jobs.server.url, seed=0, under="/jobs")
    fuzzer.run(REQUESTS)

    assert {("POST /jobs", 202), ("POST /jobs", 400), ("GET /jobs/{job_id}", 404)} <= set(fuzzer.counts)


def test_endpoints_and_names() -> None:
    """Each endpoint has a command; every status and every metric has its row."""
    paths = {path.replace("$JOB", "{job_id}") for path in re.findall(r"localhost:6000(/jobs[/\w$]*)", TEXT)}

    assert paths == {operation.path for operation in OPERATIONS if operation.path.startswith("/jobs")}
    assert set() == set(JOB_STATUSES) - set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert set() == {f"{name}_total" for name in COUNTERS} - set(re.findall(r"^\| `(\w+)[`{]", TEXT, re.MULTILINE))
