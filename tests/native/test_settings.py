"""`make up` starts from settings that are complete and well-formed, or names the one that is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.stack import settings
from services.stack.errors import StackError
from services.up import consistency
from tests.native.tree import Tree

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = (ROOT / ".env").read_text()


def load(tmp_path: Path, text: str = SHIPPED, **environ: str) -> settings.Settings:
    """The settings of a tree with this `.env`, in this environment."""
    (tmp_path / ".env").write_text(text)
    return settings.load(tmp_path, environ)


def with_line(name: str, value: str) -> str:
    """The shipped `.env` with another value."""
    return re.sub(rf"^{name}=.*$", f"{name}={value}", SHIPPED, flags=re.MULTILINE)


def test_shipped(tmp_path: Path) -> None:
    """The shipped `.env` is complete, and its ports are the documented ones."""
    shipped = load(tmp_path)
    assert (shipped["REWARD_PORT"], shipped["CACHE_PORT"], shipped["BIND_ADDRESS"]) == ("6000", "6379", "127.0.0.1")


def test_environment_wins(tmp_path: Path) -> None:
    """A variable of the environment beats the line in `.env`."""
    assert load(tmp_path, REWARD_PORT="7000").url() == "http://localhost:7000"


@pytest.mark.parametrize("name", settings.CHECKS)
def test_missing(tmp_path: Path, name: str) -> None:
    """A setting without a line in `.env` is named, even where the environment has it."""
    text = re.sub(rf"^{name}=.*\n", "", SHIPPED, flags=re.MULTILINE)
    with pytest.raises(StackError, match=rf"\.env: {name} is missing"):
        load(tmp_path, text, **{name: "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REWARD_PORT", "six"),
        ("REWARD_PORT", "0"),
        ("REWARD_PORT", "65536"),
        ("REWARD_PORT", "6000.0"),
        ("REWARD_PORT", "-1"),
        ("REWARD_PORT", "٦"),
        ("CACHE_PORT", ""),
        ("CACHE_PASSWORD", "with space"),
        ("CACHE_PASSWORD", "a@b"),
        ("CACHE_MAX_MEMORY", "lots"),
        ("CACHE_MAX_MEMORY", "512"),
        ("REWARD_CACHE_TTL", "0"),
        ("MAX_BODY_BYTES", "64m"),
        ("BIND_ADDRESS", "localhost"),
        ("GATEWAY_TIMEOUT", "5s"),
        ("REWARD_WORKERS", "two"),
        ("VERIFY_PROCESSES", "0"),
        ("REWARD_TYPE", ""),
        ("QUEUE_PORT", "none"),
        ("WORKERS", "0"),
        ("REWARD_JOB_RETRIES", "-1"),
        ("STACK", "docker"),
        ("UP_TIMEOUT", "0"),
        ("JUDGE", "yes"),
        ("EMBEDDING", ""),
        ("JUDGE_PORT", "8k"),
        ("JUDGE_REPLICAS", "0"),
        ("JUDGE_MODEL", "two words"),
        ("JUDGE_GPU_MEMORY_UTILIZATION", "90"),
        ("JUDGE_BALANCING", "random"),
        ("JUDGE_VLLM_ARGS", "--override 'open"),
        ("JUDGE_VLLM_ARGS", "--seed 3 ; --trust-remote-code"),
        ("VLLM_CPU_KVCACHE_SPACE", "1.5"),
        ("LLM_JUDGE_SERVER_URL", "judge:8000"),
        ("LLM_JUDGE_SERVER_URL", "http://key@judge:8000"),
        ("LLM_JUDGE_SERVER_TIMEOUT", "0"),
        ("EMBEDDING_SERVER_URL", "http://one:80000"),
        ("MONITORING", "auto"),
        ("PROMETHEUS_PORT", ""),
        ("PROMETHEUS_RETENTION_DAYS", "15d"),
        ("GRAFANA_IMAGE", ""),
    ],
)
def test_malformed(tmp_path: Path, name: str, value: str) -> None:
    """A malformed value is named with its source, whether it stands in `.env` or in the environment."""
    with pytest.raises(StackError, match=rf"^\.env: {name}: .* is not "):
        load(tmp_path, with_line(name, value))
    with pytest.raises(StackError, match=rf"^environment: {name}: .* is not "):
        load(tmp_path, **{name: value})


@pytest.mark.parametrize("value", ["--seed 3 #3", "--seed '3 ;'"])
def test_flags_that_supervisord_would_cut(tmp_path: Path, value: str) -> None:
    """A list of flags that supervisord's configuration would cut off is refused, quoted or not."""
    with pytest.raises(StackError, match="JUDGE_VLLM_ARGS: .* neither ; nor # can follow a space"):
        load(tmp_path, JUDGE_VLLM_ARGS=value)


@pytest.mark.parametrize("name", settings.SECRETS)
def test_secret_not_shown(tmp_path: Path, name: str) -> None:
    """A malformed password or key is not printed."""
    with pytest.raises(StackError) as caught:
        load(tmp_path, **{name: "hunter 2\n"})
    assert name in str(caught.value) and "hunter" not in str(caught.value)


@pytest.mark.parametrize(("old", "new"), settings.RENAMED.items())
def test_renamed(tmp_path: Path, old: str, new: str) -> None:
    """A name from elsewhere is refused with the name it has here."""
    with pytest.raises(StackError, match=rf"\.env: {old} is no setting; it is called {new} here"):
        load(tmp_path, f"{SHIPPED}{old}=1\n")


def test_renamed_in_the_environment(tmp_path: Path) -> None:
    """So is one in the environment, but for those that Kubernetes or other software sets."""
    with pytest.raises(
        StackError, match="environment: REWARD_SERVER_PORT is no setting; it is called REWARD_PORT here"
    ):
        load(tmp_path, REWARD_SERVER_PORT="7000")
    links = dict.fromkeys(("REWARD_SERVER_PORT", "JUDGE_PORT", "EMBEDDING_PORT"), "tcp://10.0.0.1:80")
    loaded = load(tmp_path, PORT="80", REDIS_PORT="6379", MODEL_ID="m", **links)
    assert [loaded[name] for name in ("REWARD_PORT", "JUDGE_PORT", "EMBEDDING_PORT")] == ["6000", "8000", "8080"]


def test_unknown(tmp_path: Path) -> None:
    """A name that resembles a setting is refused with the setting it resembles."""
    with pytest.raises(StackError, match="REWARD_PROT is no setting; did you mean REWARD_PORT"):
        load(tmp_path, f"{SHIPPED}REWARD_PROT=7000\n")


def test_make_up_stops_at_once(tree: Tree) -> None:
    """`make up` ends with the name of the malformed variable, before it starts anything."""
    result = tree.run("up", REWARD_PORT="six")
    assert (result.returncode, result.stdout) == (
        1,
        "error: environment: REWARD_PORT: 'six' is not a whole number from 1 to 65535\n",
    )
    assert not (tree.path / ".run").exists()


@pytest.mark.parametrize(
    ("values", "both"),
    [
        ({"JUDGE": "on", "LLM_JUDGE_SERVER_URL": "http://node-7:8000"}, ("JUDGE=on", "LLM_JUDGE_SERVER_URL")),
        ({"EMBEDDING": "on", "EMBEDDING_SERVER_URL": "http://node-7:8080"}, ("EMBEDDING=on", "EMBEDDING_SERVER_URL")),
        ({"STACK": "native", "MONITORING": "on"}, ("STACK=native", "MONITORING=on")),
    ],
)
def test_contradictory(tmp_path: Path, values: dict[str, str], both: tuple[str, str]) -> None:
    """Two settings that contradict each other are both named."""
    with pytest.raises(StackError) as caught:
        consistency.require(load(tmp_path, **values))
    assert [name in str(caught.value) for name in both] == [True, True]


@pytest.mark.parametrize(
    ("values", "both"),
    [
        ({"STOP_TIMEOUT": "30"}, ("STOP_TIMEOUT", "REWARD_GRACEFUL_TIMEOUT")),
        ({"CACHE_MAX_MEMORY": "1gb"}, ("CACHE_MEMORY=1g", "CACHE_MAX_MEMORY=1gb")),
        ({"QUEUE_MEMORY": "900m"}, ("QUEUE_MEMORY=900m", "QUEUE_MAX_MEMORY")),
    ],
)
def test_contradictory_for_containers(tmp_path: Path, values: dict[str, str], both: tuple[str, str]) -> None:
    """What containers alone read contradicts nothing where the services are local processes."""
    with pytest.raises(StackError) as caught:
        consistency.require_for("compose", load(tmp_path, **values))
    assert [name in str(caught.value) for name in both] == [True, True]
    consistency.require_for("native", load(tmp_path, **values))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"JUDGE": "off", "LLM_JUDGE_SERVER_URL": "http://node-7:8000"},
        {"JUDGE": "on", "LLM_JUDGE_SERVER_URL": "http://localhost:8000"},
        {"MONITORING": "on", "CACHE_MAX_MEMORY": "4gb", "CACHE_MEMORY": "0"},
    ],
)
def test_not_contradictory(tmp_path: Path, values: dict[str, str]) -> None:
    """What goes together is taken: the stack's own address in the user's shell is no second judge."""
    consistency.require(load(tmp_path, **values))
    consistency.require_for("compose", load(tmp_path, **values))


@pytest.mark.parametrize(
    ("address", "password", "expected"),
    [
        ("0.0.0.0", "", "127.0.0.1"),
        ("0.0.0.0", "word", "0.0.0.0"),
        ("10.0.0.5", "word", "127.0.0.1 10.0.0.5"),
        ("::", "word", "127.0.0.1 ::"),
        ("127.0.0.1", "word", "127.0.0.1"),
    ],
)
def test_cache_addresses(tmp_path: Path, address: str, password: str, expected: str) -> None:
    """The cache listens beyond loopback only with a password."""
    assert load(tmp_path, BIND_ADDRESS=address, CACHE_PASSWORD=password).cache_addresses == expected


def test_down_with_broken_settings(tree: Tree) -> None:
    """Settings that are wrong do not keep a stack from being stopped."""
    result = tree.run("down", REWARD_PORT="six")
    assert (result.returncode, result.stdout) == (0, "nothing runs here\n")
