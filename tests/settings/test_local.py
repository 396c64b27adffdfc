"""`.env.local`: the user's lasting settings, between `.env` and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from services.stack import helm_values, settings
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from tests.support.snippets import block

KEY = "sesame-of-the-tests-1"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the shipped `.env`."""
    (tmp_path / ".env").write_text((ROOT / ".env").read_text())
    return tmp_path


def write(tree: Path, text: str, mode: int = 0o600) -> None:
    """Its `.env.local`."""
    (tree / ".env.local").write_text(text)
    (tree / ".env.local").chmod(mode)


def test_order(tree: Path) -> None:
    """It beats `.env`, also with nothing, and the environment beats it."""
    write(tree, "REWARD_PORT=7000\nJUDGE=off\nRULES=\n", 0o644)
    loaded = settings.load(tree, {"JUDGE": "on"})
    assert (loaded["REWARD_PORT"], loaded["JUDGE"], loaded["RULES"]) == ("7000", "on", "on")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("REWARD_PROT=1\n", r"^\.env\.local: unknown setting REWARD_PROT; did you mean REWARD_PORT\?"),
        ("REWARD_PORT=six\n", r"^\.env\.local: REWARD_PORT: 'six' is not"),
        ("export A=1\n", r"^\.env\.local, line 1: "),
        ("JUDGE=on\nJUDGE=off\n", r"^\.env\.local, line 2: JUDGE is set twice"),
        ("PORT=1\n", r"^\.env\.local: unknown setting PORT; it is called REWARD_PORT here"),
    ],
)
def test_checks(tree: Path, text: str, words: str) -> None:
    """It is checked as `.env` is, and the error names it."""
    write(tree, text)
    with pytest.raises(StackError, match=words):
        settings.load(tree, {})


@pytest.mark.parametrize("name", ["LLM_JUDGE_SERVER_API_KEY", "HF_TOKEN"])
def test_secrets(tree: Path, name: str) -> None:
    """It may hold a secret where nobody else may read it."""
    write(tree, f"{name}={KEY}\n")
    assert settings.read_local(tree)[name] == KEY
    write(tree, f"{name}={KEY}\n", 0o640)
    with pytest.raises(StackError, match=rf"other users may read {name} — chmod 600 \.env\.local"):
        settings.load(tree, {})


def test_run_dir(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A running stack is found by it, and a broken file keeps none from being stopped."""
    write(tree, "RUN_DIR=/tmp/other\n")
    assert settings.run_dir(tree, {}) == "/tmp/other"
    write(tree, "RUN_DIR=/tmp/other\nnonsense\n")
    assert settings.run_dir(tree, {}) == ".run"
    assert "line 2" in capsys.readouterr().err


def test_further_variables(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the Compose project may be in it, and the environment beats that, too."""
    write(tree, "COMPOSE_PROJECT_NAME=second\n")
    monkeypatch.delenv("COMPOSE_PROJECT_NAME", raising=False)
    settings.export_extra_variables(tree)
    assert settings.os.environ["COMPOSE_PROJECT_NAME"] == "second"
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "third")
    settings.export_extra_variables(tree)
    assert settings.os.environ["COMPOSE_PROJECT_NAME"] == "third"


def test_values_for_helm() -> None:
    """`make plan` prints it as values that the chart's schema takes; what the chart has no value for is a comment."""
    own = {
        "JUDGE": "off",
        "EMBEDDING_MODEL": "org/model",
        "WORKERS": "3",
        "REWARD_THREADS": "16",
        "GATEWAY_TIMEOUT": "60",
        "REWARD_PORT": "7000",
        "REWARD_FUNCTIONS": "mine.py",
        "REWARD_SERVER_API_KEYS": KEY,
        "MY_JUDGE_KEY": KEY,
    }
    text = helm_values.to_values(own)
    assert yaml.safe_load(text) == {
        "judge": {"enabled": False},
        "embedding": {"model": "org/model"},
        "worker": {"replicas": 3},
        "settings": {"REWARD_THREADS": 16},
        "gateway": {"settings": {"GATEWAY_TIMEOUT": 60}},
    }
    comments = [line for line in text.splitlines() if line.startswith("# ")]
    assert [line.split()[1].strip(":") for line in comments] == [
        "REWARD_PORT=7000",
        "REWARD_FUNCTIONS=mine.py",
        "REWARD_SERVER_API_KEYS",
        "MY_JUDGE_KEY",
    ]
    assert KEY not in text and helm_values.to_values({}) == ""


def test_page(tree: Path) -> None:
    """The file on docs/settings.md is read without an error."""
    write(tree, block("docs/settings.md", "sh .env.local", "JUDGE=off"))
    assert settings.load(tree, {})["REWARD_PORT"] == "7000"
    assert settings.read_local(tree)["COMPOSE_PROJECT_NAME"] == "second"
