"""Jobs of Slurm as docs/hpc.md has them submitted, on a cluster of logical nodes with a fake judge.

`make slurm` runs this file, which `make test` does not collect: it takes a quarter of an hour.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apptainer.running_stack import TOOL
from tests.slurm.cluster import JOB_SECONDS, Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.timeout(1800)]

SAMPLES = 3000
TRAINER = "sh tests/slurm/trainer.sh"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose user has built the images."""
    if not TOOL.exists():
        pytest.skip("there is no container with Slurm beside the checkout")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.wait()
        made.prepare()
        yield made
    finally:
        made.stop()


@pytest.fixture
def clean(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, on which nothing is left behind by the jobs of a test, however they ended."""
    yield cluster
    cluster.run("scancel --user user")
    eventually(lambda: not cluster.run("squeue --noheader"), seconds=JOB_SECONDS)
    eventually(lambda: not cluster.left(), lambda: "\n".join(cluster.left()))


def test_trainer_fails(clean: Cluster) -> None:
    """The trainer finds the servers of the job's other node, and its exit status is the job's."""
    job = clean.submit("train_with_rewards", *TRAINER.split(), "fail")
    assert clean.until_ended(job) == "FAILED"
    assert clean.shown(job, "ExitCode") == "7:0"
    said = clean.said(job)
    assert "trainer on n2" in said and "12 rows; ok 12" in said, said


@pytest.mark.parametrize(("end", "states"), [("cancelled", {"CANCELLED"}), ("out of time", {"TIMEOUT", "FAILED"})])
def test_trainer_is_ended(clean: Cluster, end: str, states: set[str]) -> None:
    """A job that is cancelled, or runs out of time, ends the trainer and tidies up."""
    given = {"TIME": "4"} if end == "out of time" else {}
    job = clean.submit("train_with_rewards", *TRAINER.split(), "wait", **given)
    eventually(lambda: "trainer on" in clean.said(job), lambda: clean.said(job), JOB_SECONDS)
    if end == "cancelled":
        clean.run(f"scancel {job}")
    assert clean.until_ended(job) in states
    assert "trainer was told to end" in clean.said(job)


def test_cancelled_while_loading(clean: Cluster) -> None:
    """A replica that is cancelled while its judge loads a model, and hears no word, leaves nothing."""
    job = clean.submit("judge", JUDGE_CPU_MODEL=str(clean.loading_judge))
    eventually(lambda: any("loading_judge.py --uds" in line for line in clean.left()), seconds=JOB_SECONDS)
    clean.run(f"scancel {job}")
    assert clean.until_ended(job) == "CANCELLED"
    eventually(lambda: not clean.left(), lambda: "\n".join(clean.left()))


def test_several_server_nodes(clean: Cluster) -> None:
    """With two nodes of servers the first one's gateway follows the judge of the second: both answer."""
    job = clean.submit("train_with_rewards", *TRAINER.split(), "judges", SERVER_NODES="2", JUDGE="on")
    assert clean.until_ended(job) == "COMPLETED", clean.said(job)
    said = clean.said(job)
    assert "2 rows; ok 2" in said
    assert {*re.findall(rf"judged by rewardstack-{job}\.0-(\w+)", said)} == {"n1", "n2"}, said


def test_node_fails(clean: Cluster) -> None:
    """A stack whose node fails comes up on another; its first run, ended when the node is back, takes nothing of it."""
    job = clean.submit("stack")
    before = json.loads(clean.endpoints(job).read_text())["servers"]
    # The controller cannot tell it to end the job.
    clean.run("kill -STOP $(cat /var/lib/cluster/n1.pid)", user="root")
    clean.run("scontrol update NodeName=n1 State=DOWN Reason=test", user="root")
    eventually(
        lambda: _key(clean, job) not in ("", before["REWARD_SERVER_API_KEY"]), lambda: clean.said(job), JOB_SECONDS
    )
    clean.run("kill -CONT $(cat /var/lib/cluster/n1.pid)", user="root")
    clean.run("scontrol update NodeName=n1 State=RESUME", user="root")
    eventually(
        lambda: not any(f"{job}.0" in line for line in clean.left()), lambda: "\n".join(clean.left()), JOB_SECONDS
    )
    clean.run(f"REWARDSTACK_ENDPOINTS={clean.endpoints(job)} .venv/bin/rewardstack check")
    assert clean.shown(job, "JobState") == "RUNNING"


def _key(cluster: Cluster, job: int) -> str:
    """The key of a stack's reward server; empty while it is not up."""
    file = cluster.jobs / str(job) / "endpoints.json"
    return str(json.loads(file.read_text())["servers"]["REWARD_SERVER_API_KEY"]) if file.exists() else ""


def test_training_is_requeued(clean: Cluster) -> None:
    """A training that is requeued runs again, on all its nodes, and succeeds."""
    job = clean.submit("train_with_rewards", *TRAINER.split(), "again", TRAINER_NODES="2")
    eventually(lambda: clean.said(job).count("trainer on") == 2, lambda: clean.said(job), JOB_SECONDS)
    clean.run(f"scontrol requeue {job}")
    eventually(lambda: clean.shown(job, "Restarts") == "1", seconds=JOB_SECONDS)
    assert clean.until_ended(job) == "COMPLETED", clean.said(job)
    said = clean.said(job)
    assert said.count("12 rows; ok 12") == 2 and len({*re.findall(r"trainer on (\w+)", said)}) == 2, said


def test_killed(clean: Cluster) -> None:
    """What a replica leaves that is killed outright, the next one of the same user clears: its processes and files."""
    killed = clean.submit("judge")
    eventually(lambda: [*clean.jobs.glob(f"judges/*.{killed}.0.json")], lambda: clean.said(f"{killed}_1"), JOB_SECONDS)
    clean.run("kill -KILL $(pgrep -u user -f 'slurm_script|slurm/serve.sh')", user="root")
    assert clean.until_ended(killed) == "FAILED"
    named = (f"jobs/{killed}", f"cluster.{killed}.0.json", f"/tmp/rewardstack-{killed}.0-", "supervisord")
    left = clean.left()
    assert all(any(name in line for line in left) for name in named), left
    job = clean.submit("judge")
    eventually(lambda: [*clean.jobs.glob(f"judges/*.{job}.0.json")], lambda: clean.said(f"{job}_1"), JOB_SECONDS)
    assert [line for line in clean.left() if f"{killed}.0" in line or line.endswith(f"/{killed}")] == []


class Pool:
    """A stack, and replicas of a judge that it follows."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.folder = cluster, cluster.jobs / "judges"
        self.replicas = [cluster.submit("judge") for _ in range(2)]
        self.job = cluster.submit("stack", JUDGE_REPLICAS_DIR=str(self.folder))
        self.endpoints = cluster.endpoints(self.job)
        for replica in self.replicas:
            self.until_followed(replica)

    def until_followed(self, replica: int) -> None:
        """Wait until the stack's gateway has a replica."""
        file = self.file(replica)
        eventually(file.exists, lambda: self.cluster.said(f"{replica}_1"), JOB_SECONDS)
        address = json.loads(file.read_text())["servers"]["LLM_JUDGE_SERVER_URL"].rpartition(":")[2]
        eventually(lambda: f":{address}" in self.followed().splitlines()[-1], self.followed)

    def file(self, replica: int) -> Path:
        """In which a replica says where it is."""
        return self.folder / f"cluster.{replica}.0.json"

    def followed(self) -> str:
        """The lists of replicas that the stack's `watch` has logged."""
        log = f"grep -F {self.folder}: /tmp/rewardstack-{self.job}.0-*/logs/watch.log"
        return self.cluster.run(log, check=False) or "nothing"

    def score(self, samples: Path) -> str:
        """The command that scores samples where the file of endpoints says, again and again until told to stop."""
        score = f".venv/bin/rewardstack score {samples} --output scored.jsonl --force"
        return f"export REWARDSTACK_ENDPOINTS={self.endpoints}; until [ -e stop ]; do {score} 2>&1 || exit 1; done"


def test_replicas_come_and_go(clean: Cluster) -> None:
    """A replica that is cancelled and another that is added in mid-run lose no sample."""
    pool, samples = Pool(clean), clean.tree / "judged.jsonl"
    samples.write_text("".join(json.dumps(sample(number)) + "\n" for number in range(SAMPLES)))
    scoring = clean.start(pool.score(samples))
    eventually((clean.tree / "scored.jsonl").exists, seconds=JOB_SECONDS)
    clean.run(f"scancel {pool.replicas[0]}")
    pool.until_followed(clean.submit("judge"))
    clean.run("touch stop")
    said, _ = scoring.communicate(timeout=JOB_SECONDS)
    rounds = re.findall(r"([0-9,]+) rows; (ok [0-9,]+); mean", said)
    assert scoring.returncode == 0 and rounds and {*rounds} == {(f"{SAMPLES:,}", f"ok {SAMPLES:,}")}, said[-3000:]


def sample(number: int) -> dict[str, object]:
    """One that the judge has not seen."""
    question = f"What is {number} + 1?"
    return {
        "data_source": "llm_judge_remote_slurm",
        "prompt": question,
        "solution_str": f"It is {number + 1}.",
        "ground_truth": str(number + 1),
        "extra_info": {"problem": question},
    }


def test_another_user(clean: Cluster) -> None:
    """Another user of the nodes, without the key, gets nothing but health, and can look into no folder."""
    pool = Pool(clean)
    told = [pool.endpoints, *map(pool.file, pool.replicas)]
    urls = {url for file in told for name, url in _servers(file).items() if name.endswith("_URL")}
    assert len(urls) == 4
    paths = ("/health", "/v1/models", "/v1/reward_types", "/tokenize", "/version", "/openapi.json")
    ask = "curl --silent --output /dev/null --write-out '%{http_code}'"
    for url in urls:
        served = {path for path in paths if clean.run(f"{ask} {url}{path}", user="other") == "200"}
        assert served == {"/health"}, url
    for folder in (f"/tmp/rewardstack-{pool.job}.0-*", str(clean.jobs), str(pool.endpoints), str(pool.folder / "key")):
        said = clean.run(f"ls {folder}/ || cat {folder}", user="other", check=False)
        assert said.count("Permission denied") == 2 and "API_KEY" not in said, said


def _servers(file: Path) -> dict[str, str]:
    return dict(json.loads(file.read_text())["servers"])
