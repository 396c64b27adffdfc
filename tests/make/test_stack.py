"""`make up`, `make status`, `make logs`, `make down` and `make clean` with containers of a real engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.up.compose import engine
from services.up.compose.composition import Composition, use_entry_points
from services.up.compose.project import Project
from tests.native.test_stack import A_REWARD_FUNCTION, SAMPLES, statuses
from tests.native.tree import Tree
from tests.support.servers import free_port

HERE = Path(__file__).parent
STARTING_SECONDS = 600
SERVICES = ("cache", "gateway", "queue", "rules", "worker")

pytestmark = [
    pytest.mark.usefixtures("needs_engine"),
    pytest.mark.nightly,
    pytest.mark.timeout(900),
]


class Containers(Tree):
    """A copy of the tree whose stack runs in containers, under a name and an image of its own."""

    @property
    def project(self) -> str:
        """Its name at the engine."""
        return self.environment["COMPOSE_PROJECT_NAME"]

    def ids(self) -> dict[str, str]:
        """Container by service."""
        shown = docker("ps", "--filter", self.label, "--format", '{{.Label "com.docker.compose.service"}} {{.ID}}')
        return dict(line.split() for line in shown.splitlines())

    @property
    def label(self) -> str:
        """By which the engine finds what belongs to it."""
        return f"label=com.docker.compose.project={self.project}"

    def left(self) -> list[str]:
        """Containers, networks and volumes of it."""
        lists = (("ps", "--all"), ("network", "ls"), ("volume", "ls"))
        return [line for listed in lists for line in docker(*listed, "--quiet", "--filter", self.label).split()]


def docker(*arguments: str) -> str:
    """What the engine answers."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    """A running stack that the tests of this module share; each leaves it running."""
    name = f"rewardstack-{uuid.uuid4().hex[:8]}"
    tree = Containers(tmp_path_factory.mktemp("containers") / "tree", STARTING_SECONDS)
    tree.environment |= {"STACK": "", "COMPOSE_PROJECT_NAME": name, "REWARDSTACK_IMAGE": f"{name}:test"}
    tree.environment |= {"UP_TIMEOUT": "300", "MODEL_UP_TIMEOUT": "300"}
    shutil.copy(HERE / "judge.yaml", tree.path / "compose.override.yaml")
    shutil.copy(HERE / "judge.py", tree.path)
    tree.environment |= {name: os.environ[name] for name in ("BUILD_NETWORK",) if name in os.environ}
    try:
        result = tree.run("up")
        assert (result.returncode, statuses(result.stdout)) == (0, [("ok", "no")] * SAMPLES), result.stdout
        assert "deployment: containers" in result.stdout
        yield tree
    finally:
        tree.run("clean")
        docker("image", "rm", "--force", tree.environment["REWARDSTACK_IMAGE"])


def test_second_up(stack: Containers) -> None:
    """A second `make up` leaves every container alone, and finds the cacheable scores in the cache."""
    before = stack.ids()
    again = stack.run("up")
    shown = statuses(again.stdout)
    assert (again.returncode, [status for status, _ in shown]) == (0, ["ok"] * SAMPLES), again.stdout
    assert "yes" in {cached for _, cached in shown}
    assert stack.ids() == before and tuple(sorted(before)) == SERVICES


def test_status(stack: Containers) -> None:
    """`make status` has a row for each container; one that is stopped makes it fail, and `make up` starts it again."""
    shown = stack.run("status")
    assert shown.returncode == 0, shown.stdout
    assert [line.split()[0] for line in shown.stdout.splitlines() if "(healthy)" in line] == list(SERVICES)
    docker("stop", stack.ids()["worker"])
    shown = stack.run("status")
    assert (shown.returncode, "ERROR: unhealthy: worker" in shown.stdout) == (1, True)
    assert (again := stack.run("up")).returncode == 0, again.stdout


def test_kept_up(stack: Containers) -> None:
    """A service that was healthy once is restarted whenever it ends."""
    policies = docker("inspect", "--format", "{{.HostConfig.RestartPolicy.Name}}", *stack.ids().values())
    assert set(policies.split()) == {"unless-stopped"}


def test_logs(stack: Containers) -> None:
    """`make logs` shows every service's log, or one service's; an unknown name lists the services."""
    every = stack.run("logs").stdout
    assert [name for name in SERVICES if f"{name}-1" not in every] == []
    one = stack.run("logs", "--service", "queue").stdout
    assert "queue-1" in one and "rules-1" not in one
    assert f"the services are {', '.join(SERVICES)}" in stack.run("logs", "--service", "nginx").stdout


def test_the_other_way_is_refused(stack: Containers) -> None:
    """STACK=native does not start a second stack beside the containers."""
    result = stack.run("up", STACK="native")
    assert (result.returncode, "the stack is already running with STACK=compose" in result.stdout) == (1, True)


def test_another_tree(stack: Containers, tmp_path: Path) -> None:
    """Another checkout does not take over the containers of this one."""
    other = Containers(tmp_path / "tree")
    other.environment |= {"STACK": "compose", "COMPOSE_PROJECT_NAME": stack.project}
    result = other.run("up")
    assert (result.returncode, f"runs already, from {stack.path}" in result.stdout) == (1, True)


def test_key(stack: Containers) -> None:
    """With a new key the reward server starts again and asks for it; `docker inspect` shows no key."""
    before = stack.ids()
    cache = {"CACHE_PASSWORD": "sesame-three", "CACHE_PORT": str(free_port())}
    result = stack.run("up", REWARD_SERVER_API_KEYS="sesame-one-of-the-tests,sesame-two-of-the-tests", **cache)
    assert result.returncode == 0 and "sesame" not in result.stdout, result.stdout
    assert (post(stack), post(stack, "sesame-two-of-the-tests")) == (401, 400)
    ids = stack.ids()
    assert ids["rules"] != before["rules"] and ids["queue"] == before["queue"]
    assert "sesame" not in docker("inspect", *ids.values())
    assert (again := stack.run("up")).returncode == 0, again.stdout
    assert post(stack) == 400


def test_own_functions(stack: Containers) -> None:
    """A user's reward function is mounted; a change of its file starts what reads it again, and no Redis."""
    mine = stack.path / "mine.py"
    mine.write_text(A_REWARD_FUNCTION)
    assert (first := stack.run("up", REWARD_FUNCTIONS="mine.py")).returncode == 0, first.stdout
    with urllib.request.urlopen(f"{stack.url}/v1/reward_types", timeout=60) as reply:
        assert "characters" in json.dumps(json.load(reply))
    before = stack.ids()
    mine.write_text(f"{A_REWARD_FUNCTION}\n# changed\n")
    assert stack.run("up", REWARD_FUNCTIONS="mine.py").returncode == 0
    # Compose recreates the gateway with them, which depends on the reward server.
    changed = {name for name, id in stack.ids().items() if before[name] != id}
    assert {"rules", "worker"} <= changed <= {"rules", "worker", "gateway"}


def test_service_that_does_not_come_up(stack: Containers) -> None:
    """A service that ends while it starts is named, with its last lines and a remedy."""
    broken = stack.path / "broken.py"
    broken.write_text("raise RuntimeError('these functions are broken')\n")
    result = stack.run("up", REWARD_FUNCTIONS="broken.py")
    assert result.returncode == 1
    assert "these functions are broken" in result.stdout and "exited during startup" in result.stdout
    assert (again := stack.run("up")).returncode == 0, again.stdout


def test_judge(stack: Containers) -> None:
    """A setting of the judge recreates the judge and nothing else, and no reward request fails meanwhile."""
    assert (first := stack.run("up", JUDGE="on")).returncode == 0, first.stdout
    before = stack.ids()
    with rewards(stack) as told:
        again = stack.run("up", JUDGE="on", VLLM_CPU_KVCACHE_SPACE="2")
    assert again.returncode == 0, again.stdout
    assert {name for name, id in stack.ids().items() if before[name] != id} == {"judge"}
    assert told.keys() == {200}, told


def test_named_judges(stack: Containers) -> None:
    """A judge of a routes file has containers of its own, which a reward request that names it reaches."""
    before = stack.ids()
    (stack.path / "judges.toml").write_text('[judges.small]\nmodel = "org/small"\nreplicas = 2\n')
    plan = stack.run("plan", JUDGE="on", REWARDSTACK_ROUTES="judges.toml").stdout
    assert any("judge.small x2" in line and "org/small" in line for line in plan.splitlines()), plan
    result = stack.run("up", JUDGE="on", REWARDSTACK_ROUTES="judges.toml")
    assert result.returncode == 0, result.stdout
    after = stack.ids()
    assert [after[name] for name in ("cache", "queue")] == [before[name] for name in ("cache", "queue")]
    item = {"data_source": "small", "solution_str": "Four.", "ground_truth": "4", "extra_info": {"question": "2 + 2?"}}
    body = json.dumps({"items": [item]}).encode()
    request = urllib.request.Request(f"{stack.url}/v1/score", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        [score] = json.load(reply)["scores"]
    assert (score["status"], score["value"], score["source"]) == ("ok", 1.0, "llm_judge:small")
    assert "judge.small-2" in stack.run("status").stdout


def test_judge_that_does_not_come_up(stack: Containers) -> None:
    """A judge that ends while it starts is left out with its cause and remedy where it may be, and is an error else."""
    insisted = stack.run("up", JUDGE="on", VLLM_CPU_KVCACHE_SPACE="9")
    assert (insisted.returncode, "ERROR: judge: exited during startup" in insisted.stdout) == (1, True)
    result = stack.run("up", JUDGE="auto", VLLM_CPU_KVCACHE_SPACE="9")
    assert result.returncode == 0, result.stdout
    assert "no judge: exited during startup: RuntimeError: no memory for the cache" in result.stdout
    assert "JUDGE=off leaves the judge out" in result.stdout
    assert tuple(sorted(stack.ids())) == SERVICES
    assert stack.run("status").returncode == 0
    assert (without := stack.run("up")).returncode == 0, without.stdout


@contextmanager
def rewards(stack: Containers) -> Iterator[Counter[int]]:
    """Asks for rewards without a pause while it is entered; counts the statuses of the answers."""
    told: Counter[int] = Counter()
    end = threading.Event()
    item = {"data_source": "gsm8k", "solution_str": "#### 4", "ground_truth": "4"}
    body = json.dumps({"items": [item]}).encode()

    def ask() -> None:
        while not end.is_set():
            told[post(stack, body=body)] += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield told
    finally:
        end.set()
        thread.join()


def test_settings_that_became_wrong(stack: Containers) -> None:
    """Settings that are wrong keep nobody from looking at the stack; `make up` names the one that is."""
    assert stack.run("status", REWARD_PORT="six", WORKERS="many").returncode == 0
    assert "REWARD_PORT: 'six' is not" in stack.run("up", REWARD_PORT="six").stdout


def test_programs_of_images(stack: Containers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script that sets a judge's keys starts what the judge's image starts, unless the environment names it."""
    image = docker("inspect", "--format", "{{.Config.Image}}", stack.ids()["cache"]).strip()
    entry_point = json.loads(docker("image", "inspect", "--format", "{{json .Config.Entrypoint}}", image))
    given = ["sh", "/with_keys.sh", "KEY=/run/secrets/key"]
    judge = {"image": image, "entrypoint": [*given, "vllm", "serve"]}
    made = Composition(Project(engine.require(), "mine"), {"services": {"judge": judge}}, {}, {}, [])
    monkeypatch.setenv("VLLM_PROGRAM", "vllm serve")
    use_entry_points(made)
    assert judge["entrypoint"] == [*given, "vllm", "serve"]
    monkeypatch.delenv("VLLM_PROGRAM")
    use_entry_points(made)
    assert judge["entrypoint"] == [*given, *entry_point]


def test_down_and_clean(stack: Containers) -> None:
    """`make down` leaves nothing but named volumes, and no key on the disk; `make clean` removes those too."""
    assert (down := stack.run("down")).returncode == 0, down.stdout
    assert [name for name in stack.left() if not name.startswith(f"{stack.project}_")] == []
    assert f"{stack.project}_queue" in stack.left()
    assert not (stack.path / ".run/secrets").exists()
    assert stack.run("status").stdout.startswith("ERROR: nothing runs here")
    assert (clean := stack.run("clean")).returncode == 0, clean.stdout
    assert (stack.left(), (stack.path / ".run").exists()) == ([], False)


def post(stack: Containers, key: str = "", body: bytes = b"{}") -> int:
    """Status of the answer to a request, without items where no other is given; 0 where there is none."""
    request = urllib.request.Request(
        f"{stack.url}/v1/score", body, {"Content-Type": "application/json", **({"X-API-Key": key} if key else {})}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0
