"""Judges that the file of routes names, as `make up` starts them: servers, programs, the files of the gateway."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from services.judge import engine, model
from services.judge.engine import Vllm
from services.models import environment, machine
from services.models.machine import GIB, Gpu
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import load as load_settings
from services.up import model_servers, named_judges
from services.up.model_servers import EMBEDDING, ModelServer
from services.up.native import stack
from services.up.native.stack import Stack
from services.up.services import kind_of, service_of
from services.up.up import PLAN
from tests.native.nginx import load
from tests.native.test_programs import FOUND, sections, write
from tests.support.snippets import block

CASES = json.loads((ROOT / "tests/cases/named_judges.json").read_text())
KEY = "sesame-of-the-hosted-judge"
TWO = """
[judges.small]
model = "org/small"
replicas = 2
[judges.small-2]
model = "org/other"
[judges.exact]
model = "org/default"
"""
EXTERNAL = """
[judges.hosted]
base_url = "https://judges.example"
model = "large"
api_key_env = "HOSTED_KEY"
template_path = "wording/strict.txt"
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run directory."""
    made = RunDir(str(tmp_path / "run"))
    made.make()
    return made


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vLLM for GPUs, a hub that has every model, and a machine without GPUs; no process is started."""
    monkeypatch.setattr(engine, "find", lambda python: Vllm(sys.executable, "0.32.0"))
    monkeypatch.setattr(model, "_check_availability", lambda asked, python: "reachable")
    monkeypatch.setattr(machine, "gpus", list)


def test_the_document(run: RunDir, tmp_path: Path) -> None:
    """The judge of the file in `docs/judge.md` has a row in the plan, by the setting that is printed below the file."""
    commands = block("docs/judge.md", "bash", "REWARDSTACK_ROUTES")
    [name] = set(re.findall(r"^REWARDSTACK_ROUTES=(\S+) make (?:plan|up)\b", commands, re.MULTILINE))
    (tmp_path / name).write_text(block("docs/judge.md", "toml", f"# {name}"))
    settings = load_settings(ROOT, {"REWARDSTACK_ROUTES": str(tmp_path / name), "JUDGE": "on"})
    [small] = [one for one in PLAN["native"](settings, run, "").services if one.name == "judge.small"]
    assert (small.copies, small.runs.split()[-1]) == (2, "Qwen/Qwen3-4B") and small.memory


def routes(folder: Path, text: str) -> str:
    """The path of a file of routes."""
    file = folder / "routes.toml"
    file.write_text(text)
    return str(file)


def table(name: str, judge: str, replicas: int) -> str:
    """A judge's table."""
    return f'[judges.{name}]\nmodel = "{judge}"\nreplicas = {replicas}\n'


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["holds"])
def test_choice(case: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case starts the servers that it names, with models, replicas and names, and says why not the others."""
    monkeypatch.setattr(machine, "free_memory", lambda: case.get("free_gib", 64) * GIB)
    monkeypatch.setattr(environment, "unsupported_reason", lambda models: "")
    text = "".join(table(name, *judge) for name, judge in case["judges"].items())
    settings = load(REWARDSTACK_ROUTES=routes(tmp_path, text), **case.get("settings", {}))
    choice = model_servers.choose(settings, (), named_judges.servers(settings, "org/default"))
    started = {
        server.name: [server.model, model_servers.replica_count(server, settings), [*server.judges]]
        for server in choice.chosen
    }
    assert started == case["started"]
    said = "\n".join(f"no {name}: {reason}" for name, reason in choice.left_out.items())
    for words in case.get("said", []):
        assert words in said


def described(run: RunDir, text: str = TWO, **values: object) -> tuple[Stack, list[ModelServer]]:
    """A stack with every judge of a file of routes, and the model servers that it has."""
    settings = load(REWARDSTACK_ROUTES=routes(run.path.parent, text), JUDGE_MODEL="org/default", **values)
    chosen = [server for server in named_judges.servers(settings, "org/default") if server != EMBEDDING]
    return stack.describe(settings, run, FOUND, chosen, None), chosen


def test_programs(run: RunDir) -> None:
    """Each replica of each judge is a program that serves its model on a socket of its own, which the gateway knows."""
    made, _ = described(run)
    write(made, run)
    judges = {name: json.loads(run.program(name).read_text())["command"] for name in sections(run) if "judge" in name}
    served = {name: command[command.index("--served-model-name") + 1] for name, command in judges.items()}
    assert served == {
        "judge": "org/default",
        "judge.small": "org/small",
        "judge.small.2": "org/small",
        "judge.small-2": "org/other",
    }
    sockets = {name: command[command.index("--uds") + 1] for name, command in judges.items()}
    assert sockets == {name: str(run.socket(name)) for name in judges}
    lines = [line.strip() for line in made.gateway["judge.conf"].splitlines()]
    rows = [line for line in lines if line.startswith("/judges/")]
    assert rows == ["/judges/exact judge;", "/judges/small judge.small;", "/judges/small-2 judge.small-2;"]
    upstream = lines.index("upstream judge.small {")
    listed = lines[upstream : lines.index("}", upstream)]
    assert [line for line in listed if line.startswith("server")] == [
        f"server unix:{run.socket(name)} max_fails=0;" for name in ("judge.small", "judge.small.2")
    ]


def test_gpus_are_handed_out_once(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """No two replicas of all judges share a GPU, and too few for all of them are refused."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu(str(number), 80 * GIB) for number in range(8)])
    made, _ = described(run, JUDGE_TENSOR_PARALLEL_SIZE=2)
    given = {program.name: program.environment.get("CUDA_VISIBLE_DEVICES") for program in made.programs}
    assert {name: gpus for name, gpus in given.items() if gpus} == {
        "judge": "0,1",
        "judge.small": "2,3",
        "judge.small.2": "4,5",
        "judge.small-2": "6,7",
    }
    with pytest.raises(StackError, match="5 replicas x 2 GPUs need 10 GPUs, and 8 can be used here"):
        described(run, JUDGE_TENSOR_PARALLEL_SIZE=2, JUDGE_REPLICAS=2)


def test_key_and_template(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every service that scores has an external judge's key as a file; a new key or template restarts the service."""
    template = run.path.parent / "wording/strict.txt"
    template.parent.mkdir()
    template.write_text("first")
    monkeypatch.setenv("HOSTED_KEY", KEY)
    made, _ = described(run, EXTERNAL)
    write(made, run)
    file = run.path / "secrets/judge_key_HOSTED_KEY"
    for name in ("rules", "worker"):
        assert json.loads(run.program(name).read_text())["environment"]["HOSTED_KEY_FILE"] == str(file)
    assert [path for path in run.path.rglob("*") if path.is_file() and KEY in path.read_text()] == [file]
    template.write_text("second")
    monkeypatch.setenv("HOSTED_KEY", "another")
    changes = {program.name: program.changes(run) for program in described(run, EXTERNAL)[0].programs}
    assert changes["rules"] == changes["worker"] == ", ".join(sorted([str(template), "HOSTED_KEY"]))


def test_where_a_key_stands(tmp_path: Path) -> None:
    """A judge's key is found where a service that scores finds it: in its variable, in a file, or in the settings."""
    (tmp_path / "key").write_text(f"{KEY}\n")
    settings = load(REWARDSTACK_ROUTES=routes(tmp_path, EXTERNAL.replace("template_path", "# ")))
    for environ in ({"HOSTED_KEY": KEY}, {"HOSTED_KEY_FILE": str(tmp_path / "key")}):
        assert named_judges.keys(settings, environ) == {"HOSTED_KEY": KEY}
    with pytest.raises(StackError, match="HOSTED_KEY is not a valid key"):
        named_judges.keys(settings, {"HOSTED_KEY": "a\nb"})
    text = EXTERNAL.replace("template_path", "# ").replace("HOSTED_KEY", "EMBEDDING_SERVER_API_KEY")
    ours = load(REWARDSTACK_ROUTES=routes(tmp_path, text), EMBEDDING_SERVER_API_KEY=KEY)
    assert named_judges.keys(ours, {}) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (table("Small", "org/a", 1), "judges.Small: the name of a judge that make up starts has"),
        (table('"a.b"', "org/a", 1), "judges.a.b: the name of a judge"),
        (table("a" * 64, "org/a", 1), "the name of a judge that make up starts has"),
        ("[judges.small]\nreplicas = 1", "judges.small: needs base_url, or model"),
        ("[judges.small", "routes.toml"),
        (EXTERNAL.replace("template_path", "# "), "judges.hosted.api_key_env: HOSTED_KEY is not set"),
        (
            EXTERNAL.replace("template_path", "# ").replace("HOSTED_KEY", "EMBEDDING_SERVER_API_KEY"),
            "judges.hosted.api_key_env: EMBEDDING_SERVER_API_KEY is not set",
        ),
    ],
)
def test_refused(run: RunDir, text: str, words: str) -> None:
    """A file that `make up` cannot go by is refused before anything starts, by the field."""
    with pytest.raises(StackError) as refused:
        described(run, text)
    assert words in str(refused.value)


def test_no_other_model_stands_in(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named judge's model that cannot be had is an error that names the field; nothing else judges in its name."""
    where = {"org/default": "cached"}
    monkeypatch.setattr(model, "_check_availability", lambda asked, python: where.get(asked, "unreachable"))
    with pytest.raises(StackError, match=r"judges\.small\.model: .*org/small is not cached"):
        described(run)


def test_lost(run: RunDir) -> None:
    """Without the default judge, whose port they share, there are no named ones; one of those goes alone."""
    _, chosen = described(run)
    assert model_servers.exclude(chosen, "judge") == []
    left = [server.name for server in model_servers.exclude(chosen, "judge.small")]
    assert left == ["judge", "judge.small-2"]


@pytest.mark.parametrize("service", ["judge", "judge.small", "judge.small-2", "judge.2"])
def test_names(service: str) -> None:
    """The name of a replica tells its judge, whatever that is called."""
    for number in (1, 2, 12):
        name = engine.replica_name(number, service)
        assert (kind_of(name), service_of(name)) == ("judge", service)
