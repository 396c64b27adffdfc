"""`make up` starts from settings that are complete and well-formed, or names the one that is not."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.stack import settings
from services.stack.errors import StackError
from services.stack.settings_table import TABLE
from services.up import preflight
from tests.settings.conftest import Copy
from tests.support.table import Table

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = (ROOT / ".env").read_text()


def load(tmp_path: Path, text: str = SHIPPED, **environ: str) -> settings.Settings:
    """The settings of a tree with this `.env`, in this environment."""
    (tmp_path / ".env").write_text(text)
    return settings.load(tmp_path, environ)


def test_shipped(tmp_path: Path) -> None:
    """The shipped `.env` is complete, and its ports are the documented ones."""
    shipped = load(tmp_path)
    assert (shipped["REWARD_PORT"], shipped["CACHE_PORT"], shipped["BIND_ADDRESS"]) == ("6000", "", "127.0.0.1")


def test_environment_wins(tmp_path: Path) -> None:
    """A variable of the environment beats the line in `.env`."""
    assert load(tmp_path, REWARD_PORT="7000").url() == "http://localhost:7000"


def test_missing(tmp_path: Path, table: Table) -> None:
    """A setting without a line in `.env` is named, even where the environment has it."""
    for name in settings.IN_DOTENV:
        with table.case(name):
            text = re.sub(rf"^{name}=.*\n", "", SHIPPED, flags=re.MULTILINE)
            with pytest.raises(StackError, match=rf"\.env: {name} is missing — put its line back: {name}="):
                load(tmp_path, text, **{name: "1"})


def test_renamed(tmp_path: Path, table: Table) -> None:
    """The name that other software has for a setting is refused with the setting's own name."""
    for old, new in settings.RENAMED.items():
        with (
            table.case(old),
            pytest.raises(StackError, match=rf"\.env: unknown setting {old}; it is called {new} here"),
        ):
            load(tmp_path, f"{SHIPPED}{old}=1\n")


def test_renamed_in_the_environment(tmp_path: Path) -> None:
    """So is one in the environment, but for those that Kubernetes or other software sets."""
    with pytest.raises(
        StackError, match="environment: unknown setting REWARD_SERVER_PORT; it is called REWARD_PORT here"
    ):
        load(tmp_path, REWARD_SERVER_PORT="7000")
    links = dict.fromkeys(("REWARD_SERVER_PORT", "JUDGE_PORT", "EMBEDDING_PORT"), "tcp://10.0.0.1:80")
    loaded = load(tmp_path, PORT="80", REDIS_PORT="6379", MODEL_ID="m", **links)
    assert [loaded[name] for name in ("REWARD_PORT", "JUDGE_PORT", "EMBEDDING_PORT")] == ["6000", "8000", "8080"]


def test_unknown(tmp_path: Path) -> None:
    """A name that resembles a setting is refused with the setting it resembles."""
    with pytest.raises(StackError, match="unknown setting REWARD_PROT; did you mean REWARD_PORT"):
        load(tmp_path, f"{SHIPPED}REWARD_PROT=7000\n")


def test_make_up_refuses_a_malformed_variable(copy: Copy) -> None:
    """`make up` ends with the name of the malformed variable, before it starts anything."""
    assert copy.python("-m", "services.up", "up", REWARD_PORT="six") == (
        1,
        "ERROR: environment: REWARD_PORT: 'six' is not a whole number from 1 to 65535\n",
    )
    assert not (copy.path / ".run").exists()


@pytest.mark.parametrize(
    ("values", "both"),
    [
        ({"JUDGE": "on", "LLM_JUDGE_SERVER_URL": "http://node-7:8000"}, ("JUDGE=on", "LLM_JUDGE_SERVER_URL")),
        ({"EMBEDDING": "on", "EMBEDDING_SERVER_URL": "http://node-7:8080"}, ("EMBEDDING=on", "EMBEDDING_SERVER_URL")),
        ({"STACK": "native", "MONITORING": "on"}, ("STACK=native", "MONITORING=on")),
        ({"STACK": "apptainer", "MONITORING": "on"}, ("STACK=apptainer", "MONITORING=on")),
    ],
)
def test_contradictory(tmp_path: Path, values: dict[str, str], both: tuple[str, str]) -> None:
    """Two settings that contradict each other are both named."""
    with pytest.raises(StackError) as caught:
        preflight.require_consistent(load(tmp_path, **values))
    assert [name in str(caught.value) for name in both] == [True, True]


def test_the_name_of_the_certificate_is_known(tmp_path: Path) -> None:
    """A server without keys answers to the name by which the stack's own clients reach it."""
    names = {"ALLOWED_HOSTS": ".own.example", "TLS_NAME": "rewards.example.org"}
    assert load(tmp_path, **names)["ALLOWED_HOSTS"] == ".own.example,rewards.example.org"
    assert load(tmp_path)["ALLOWED_HOSTS"] == ""


@pytest.mark.parametrize("name", ["LLM_JUDGE_SERVER_API_KEY", "EMBEDDING_SERVER_API_KEY"])
def test_short_keys_of_model_servers(tmp_path: Path, name: str) -> None:
    """A short key is refused where the stack runs the server, and left alone where it runs a remote one."""
    server = name.removesuffix("_API_KEY")
    preflight.require_consistent(load(tmp_path, **{name: "short", f"{server}_URL": "http://node-7:8000"}))
    with pytest.raises(StackError, match=f"^{name}: its value has fewer than 16 characters"):
        preflight.require_consistent(load(tmp_path, **{name: "short"}))


@pytest.mark.parametrize("name", ["REWARD_FUNCTIONS", "REWARDSTACK_ROUTES", "DATASET_PATH"])
def test_files_are_looked_for(tmp_path: Path, name: str) -> None:
    """A file that a setting names and that is not there is refused before anything starts."""
    with pytest.raises(StackError, match=f"^{name}: there is no file nowhere.py; correct the path, or unset {name}"):
        preflight.require_consistent(load(tmp_path, **{name: "nowhere.py"}))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"JUDGE": "off", "LLM_JUDGE_SERVER_URL": "http://node-7:8000"},
        {"JUDGE": "on", "LLM_JUDGE_SERVER_URL": "http://localhost:8000"},
        {"MONITORING": "on"},
    ],
)
def test_not_contradictory(tmp_path: Path, values: dict[str, str]) -> None:
    """What goes together is taken: the stack's own address in the user's shell is no second judge."""
    preflight.require_consistent(load(tmp_path, **values))


def test_down_with_broken_settings(copy: Copy) -> None:
    """Settings that are wrong, or lines that are missing, do not keep a stack from being stopped."""
    (copy.path / ".env").write_text("RUN_DIR=.run\nREWARD_PORT=seven\nNO_SETTING=1\n")
    assert copy.python("-m", "services.up", "down", JUDGE="six") == (0, "nothing runs here\n")


def test_down_without_settings(copy: Copy) -> None:
    """Without its `.env`, or with one that cannot be read, what runs is looked for where it is by default."""
    for spoil in (lambda file: file.unlink(), lambda file: file.write_bytes(b"# gr\xfcn\n")):
        spoil(copy.path / ".env")
        status, said = copy.python("-m", "services.up", "down")
        assert (status, said.splitlines()[-1]) == (0, "nothing runs here")
        assert "looking for a running stack in .run" in said


def test_misspelt() -> None:
    """A variable that is nearly a setting of the stack is found, and no client's, no cluster's and no one else's."""
    meant = {
        "JUDGE_REPLICA": "JUDGE_REPLICAS",
        "REWARD_WORKER": "REWARD_WORKERS",
        "GATEWAY_TIMEOUTS": "GATEWAY_TIMEOUT",
        "LLM_JUDGE_URL": "LLM_JUDGE_SERVER_URL",
    }
    switches = {"JUDG": "JUDGE", "JUGDE": "JUDGE", "judge": "JUDGE", "EMBEDING": "EMBEDDING", "EMBEDDINGS": "EMBEDDING"}
    others = {
        **dict.fromkeys((*TABLE, *(f"{name}_FILE" for name in TABLE)), "1"),
        **dict.fromkeys(
            ("JUDGE_SERVICE_PORT", "JUDGE_PORT_8000_TCP", "REWARD_MODEL_PATH", "WORKER", "JUDGE_NAME"), "1"
        ),
        "EMBEDDING_PORTS": "tcp://10.0.0.1:80",
        **dict.fromkeys(("JUDGE", "EMBEDDING", "STACK", "DEBUG", "EDGE", "EMBED", "BUDGET"), "off"),
    }
    assert settings.misspelled_variables({**dict.fromkeys(meant, "2"), **others}) == meant
    assert settings.misspelled_variables(dict.fromkeys(switches, "off")) == switches
    assert settings.misspelled_variables(dict.fromkeys(switches, "gpt-4")) == {}, "a variable of other software"


@pytest.mark.parametrize(
    ("localhost", "bind", "expected"),
    [
        (["127.0.0.1"], "127.0.0.1", "localhost"),
        (["::1", "127.0.0.1"], "127.0.0.1", "localhost"),
        (["::1", "127.0.0.1"], "0.0.0.0", "localhost"),
        (["::1"], "127.0.0.1", "127.0.0.1"),
        (["::1"], "0.0.0.0", "127.0.0.1"),
        ([], "127.0.0.1", "127.0.0.1"),
        (["127.0.0.1"], "::", "[::1]"),
        (["127.0.0.1"], "10.1.2.3", "10.1.2.3"),
    ],
)
def test_name_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, localhost: list[str], bind: str, expected: str
) -> None:
    """Addresses say `localhost` where that is what the gateway listens on, and the address itself where it is not."""

    def resolved(name: str, port: None) -> list[tuple[object, ...]]:
        if not localhost:
            raise socket.gaierror("Name or service not known")
        return [(None, None, None, "", (address, 0)) for address in localhost]

    monkeypatch.setattr(settings, "socket", SimpleNamespace(**{**vars(socket), "getaddrinfo": resolved}))
    loaded = load(tmp_path, BIND_ADDRESS=bind)
    assert (loaded.host, loaded.url()) == (expected, f"http://{expected}:6000")
