"""The server's settings are checked at its start, and every complaint names the variable."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rewardstack.errors import ConfigError, SettingsError
from rewardstack.settings import warn_of_misspelled
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import Settings, warn_of_misspelled_settings
from services.stack.settings_table import TABLE as STACK_TABLE
from tests.rules.conftest import clean_environment
from tests.support.servers import free_port


def test_defaults() -> None:
    """An empty environment, and empty variables, give the defaults."""
    empty = Settings.from_env({"REWARD_PORT": "", "REWARD_SERVER_API_KEYS": ""})

    assert (empty.reward_type, empty.port, empty.max_body_bytes, empty.api_keys, empty.dataset_path) == (
        *("math_verifier", 6000, 64 * 1024 * 1024, ()),
        None,
    )


def test_lists(tmp_path: Path) -> None:
    """Keys are separated by commas, files as paths are."""
    files = [tmp_path / "a.py", tmp_path / "b.py"]
    for file in files:
        file.touch()

    settings = Settings.from_env(
        {
            "REWARD_SERVER_API_KEYS": "first-key-of-tests, second-key-of-tests",
            "REWARD_FUNCTIONS": f"{files[0]}:{files[1]}",
        }
    )

    assert (("first-key-of-tests", "second-key-of-tests"), tuple(files)) == (settings.api_keys, settings.function_files)


def test_files_separated_by_commas() -> None:
    """The error about a list of files that is separated by commas says what separates them."""
    remedy = "correct the path, or unset REWARD_FUNCTIONS; separate files by colons"
    with pytest.raises(SettingsError, match=f"^REWARD_FUNCTIONS: there is no file a.py,b/c.py; {remedy}$"):
        Settings.from_env({"REWARD_FUNCTIONS": "a.py,b/c.py"})


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "127.0.0.1:6000"),
        ({"REWARD_HOST": "::1", "REWARD_PORT": "7000"}, "[::1]:7000"),
        ({"REWARD_HOST": "::1", "REWARD_SOCKET": "/run/reward.sock"}, "unix:/run/reward.sock"),
    ],
)
def test_address(environment: dict[str, str], address: str) -> None:
    """Host and port, or the Unix socket, become the address that gunicorn listens on."""
    assert Settings.from_env(environment).address == address


def test_misspelled_variables(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Each variable that is nearly one of the server's or the client's is named once, and no variable of the stack."""
    meant = {
        "REWARD_FUNCTION": "REWARD_FUNCTIONS",
        "REWARD_FUNCTONS": "REWARD_FUNCTIONS",
        "REWARD_SERVER_API_KYES": "REWARD_SERVER_API_KEYS",
        "LLM_JUDGE_URL": "LLM_JUDGE_SERVER_URL",
    }
    for name in os.environ.keys() & STACK_TABLE.keys():
        monkeypatch.delenv(name)
    for name in (*meant, *(f"{name}_FILE" for name in STACK_TABLE)):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr("rewardstack.settings._reported", set())
    warn_of_misspelled.cache_clear()

    warn_of_misspelled_settings()
    warn_of_misspelled()

    assert caplog.messages == [f"unknown variable {wrong!r}: did you mean {right!r}?" for wrong, right in meant.items()]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--reward-type", "gsm9k"], "--reward-type: reward_type 'gsm9k' is not known; did you mean 'gsm8k'? "),
        (
            ["--dataset", "/not/there.json"],
            "--dataset: there is no file /not/there.json; correct the path, or omit --dataset\n",
        ),
        (["--port", "0"], "--port: '0' is not a whole number from 1 to 65535"),
        (["--workers", "-1"], "--workers: '-1' is not a whole number from 1 to 1024"),
        (["--host", "300.1.1.1"], "--host: cannot listen on '300.1.1.1' ("),
    ],
)
def test_start_with_a_wrong_setting(needs_process: None, arguments: list[str], complaint: str) -> None:
    """The command ends with one line that says what is wrong."""
    command = [sys.executable, "-m", "rewardstack_rules.run_reward_server", "--host", "127.0.0.1", *arguments]

    environment = clean_environment(REWARD_PORT=free_port())
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr.startswith(f"run_reward_server: {complaint}")) == (1, True), done.stderr


@pytest.mark.parametrize("arguments", [(), ("--workers", "1")])
def test_start_with_a_taken_port(needs_process: None, arguments: tuple[str, ...]) -> None:
    """A port that another program listens on is one line, before the server starts, that names where it was set."""
    command = [sys.executable, "-m", "rewardstack_rules.run_reward_server", "--host", "127.0.0.1", *arguments]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        for option, variables, name in ((["--port", port], {}, "--port"), ([], {"REWARD_PORT": port}, "REWARD_PORT")):
            environment = clean_environment(**variables)

            done = subprocess.run(command + option, env=environment, capture_output=True, text=True, check=False)

            line = f"run_reward_server: {name}: port {port} is taken; use another one\n"
            assert (done.returncode, done.stderr) == (1, line)


@pytest.mark.parametrize("arguments", [(), ("--workers", "1")])
def test_start_with_a_broken_function(needs_process: None, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A file that cannot be loaded is a line with its given name, line and error, after warnings, also in gunicorn."""
    (mounted := tmp_path / "..2026_11_28").mkdir()  # as a ConfigMap is mounted
    (mounted / "broken.py").write_text("\nimport no_such_module\n")
    (file := tmp_path / "broken.py").symlink_to(mounted / "broken.py")
    port = ("--port", str(free_port()), "--host", "127.0.0.1")

    done = subprocess.run(
        [sys.executable, "-m", "rewardstack_rules.run_reward_server", *port, *arguments],
        env=clean_environment(REWARD_FUNCTIONS=file, REWARD_THREAD=1),
        capture_output=True,
        text=True,
        check=False,
    )

    why = f"{file} cannot be loaded: ModuleNotFoundError: No module named 'no_such_module' (line 2); correct it"
    [warning, line] = [line for line in done.stderr.splitlines() if '"info"' not in line]
    assert (done.returncode, why in line) == (1, True), done.stderr
    assert "unknown variable 'REWARD_THREAD': did you mean 'REWARD_THREADS'?" in warning


def test_an_unknown_reward_type_under_gunicorn(needs_process: None) -> None:
    """gunicorn ends before it starts a worker, and its last line says what is wrong, once and without a traceback."""
    command = [sys.executable, "-m", "gunicorn", "--config", "python:rewardstack_rules.http.gunicorn_conf"]
    environment = clean_environment(REWARD_TYPE="gsm9k", REWARD_PORT=free_port())

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    *_, last = (json.loads(line)["message"] for line in done.stderr.splitlines())
    assert (done.returncode, last.startswith("REWARD_TYPE: reward_type 'gsm9k' is not known; ")) == (1, True)
    assert (done.stderr.count("gsm9k"), "Traceback" in done.stderr) == (1, False), done.stderr


@pytest.mark.parametrize(
    ("hidden", "missing"),
    [
        (["flask", "werkzeug", "gunicorn", "limits", "prometheus_client", "rapidfuzz", "redis", "rq"], "Flask"),
        (["werkzeug"], "Werkzeug"),
    ],
    ids=["no extra", "no werkzeug"],
)
def test_start_without_the_extra(needs_process: None, tmp_path: Path, hidden: list[str], missing: str) -> None:
    """Without the extra `server` the command prints one line that says what to install."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({hidden}))\n")
    environment = clean_environment(PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    command = [sys.executable, "-m", "rewardstack_rules.run_reward_server", "--workers", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    remedy = 'install the server\'s extra: pip install "./services/rules[server]"'
    assert (done.returncode, done.stderr) == (1, f"run_reward_server: {missing} is missing; {remedy}\n")


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("REWARDSTACK_ROUTES", "/not/there.toml", "REWARDSTACK_ROUTES: /not/there.toml"),
        ("REWARDSTACK_ROUTES", '{"routes": {"mine": ["gsm8k"]}}', ".*: route 'mine': expected a table"),
        ("REWARDSTACK_ROUTES", '{"routes": {"mine": "nowhere"}}', "route 'mine': data_source 'nowhere' has no route"),
        (
            "REWARDSTACK_ROUTES",
            '{"routes": {"mine": "rule_remote_x"}}',
            "route 'mine': no reward function is named 'x'",
        ),
        ("LLM_JUDGE_SERVER_URL", "http://a/v1beta/openai,http://b", "LLM_JUDGE_SERVER_URL: "),
        (
            "REWARDSTACK_ROUTES",
            '{"judges": {"far": {"base_url": "http://a", "api_key_env": "FAR_KEY"}}}',
            "FAR_KEY is not set",
        ),
        (
            "REWARDSTACK_ROUTES",
            '{"judges": {"far": {"base_url": ["http://a/v1beta/openai", "http://b"]}}}',
            "judges.far.base_url: ",
        ),
        ("LLM_JUDGE_HEADERS", "Bearer", "LLM_JUDGE_HEADERS: "),
        ("EMBEDDING_SERVER_TIMEOUT", "x", "EMBEDDING_SERVER_TIMEOUT: "),
        ("REWARD_CACHE_URL", "localhost", "REWARD_CACHE_URL: "),
    ],
)
def test_what_the_pipeline_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, complaint: str
) -> None:
    """A server or worker with a malformed setting or route of the pipeline's does not start, and says which it is."""
    if value.startswith("{"):
        routes = tmp_path / "routes.json"
        routes.write_text(value)
        value = str(routes)
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match=f"^{complaint}"):
        Evaluator(Settings.from_env({}), load_registry([]))
