"""What one part refuses all that read it refuse, in the same words: `make up`, reward server, worker and client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from rewardstack import settings as client
from rewardstack.errors import SettingsError
from rewardstack_rules import settings as rules
from rewardstack_settings.setting import InvalidSetting, Setting
from services.stack import settings as stack
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from services.stack.settings_table import TABLE
from tests.support.table import Table

CASES = json.loads((ROOT / "tests/cases/settings.json").read_text())
REFUSED = [(name, value, says) for says, values in CASES["refused"].items() for name, value in values]
TAKEN = [(name, value) for name, values in CASES["taken"].items() for value in values]
LOOSER = (
    "an IP address",
    "no scheme",
    "the scheme",
    "host name;",
    "which is not a number from 1 to 65535",
    "contains a space",
    "the base URL",
    "a password",
    "an empty key",
    "a Redis URL",
    "a list of flags",
    "a space before `;`",
    "one line",
    "fewer than 16",
)
"""What JSON schema cannot say."""


def complaint(setting: Setting, value: str) -> str:
    """What is said of a value; empty where it is taken."""
    try:
        setting.read(value)
    except InvalidSetting as error:
        return str(error)
    return ""


def by_the_stack(name: str, value: str, folder: Path) -> list[str]:
    """What `make up` says of a value of the environment, and of the same in `.env`; empty where it takes it."""
    line = "\n".join((f"{name}={value}", ""))
    (folder / ".env").write_text(re.sub(rf"^{name}=.*\n", lambda _: line, (ROOT / ".env").read_text(), flags=re.M))
    found = []
    for environ, tree, source in (({name: value}, ROOT, "environment"), ({}, folder, ".env")):
        try:
            stack.load(tree, environ)
            found.append("")
        except StackError as error:
            found.append(str(error).removeprefix(f"{source}: "))
    return found


def by_a_process(from_env: Callable[[dict[str, str]], object], name: str, value: str) -> str:
    """What the reward server or the client says of a value; empty where it takes it."""
    try:
        from_env({name: value})
    except SettingsError as error:
        assert error.field == name
        return str(error)
    return ""


def everyone(name: str, value: str, folder: Path) -> set[str]:
    """What all say that read it."""
    found = set()
    if name in stack.IN_DOTENV:
        found.update(by_the_stack(name, value, folder))
    if name in rules.READ:
        found.add(by_a_process(rules.Settings.from_env, name, value))
    if name in client.READ:
        found.add(by_a_process(client.Settings.from_env, name, value))
    return found


def test_refused(tmp_path: Path, table: Table) -> None:
    """A malformed value is named with what it should be, in one wording; JSON schema refuses it where it can."""
    for at, (name, value, says) in enumerate(REFUSED):
        with table.case(f"{name}={value[:40]!r} {at}"):
            setting = TABLE[name]
            expected = complaint(setting, value)
            assert expected.startswith(f"{name}: ") and says in expected
            assert everyone(name, value, tmp_path) == {expected}
            if not any(words in says for words in LOOSER):
                assert not schema_takes(setting, value)


def test_taken(tmp_path: Path, table: Table) -> None:
    """A value that one takes all take, and so does JSON schema."""
    for name, value in TAKEN:
        with table.case(f"{name}={value}"):
            assert everyone(name, value, tmp_path) == {""}
            assert schema_takes(TABLE[name], value)


def test_default(table: Table) -> None:
    """A default is a value like any other; a variable that is set to nothing means the same."""
    for name, setting in TABLE.items():
        with table.case(name):
            assert setting.read("") == setting.read(setting.default)
            assert schema_takes(setting, setting.default)


def test_service_links() -> None:
    """What Kubernetes sets in a pod beside a service called reward is no port: the default holds."""
    assert rules.Settings.from_env({"REWARD_PORT": "tcp://10.0.0.1:80"}).port == 6000


def schema_takes(setting: Setting, text: str) -> bool:
    """Whether the JSON schema of a setting takes a value, as a number where it can be written as one."""
    values: list[object] = [text]
    if re.fullmatch(r"-?[0-9]*\.?[0-9]*", text) and text:
        values.append(float(text))
    return any(Draft202012Validator(setting.kind.schema()).is_valid(value) for value in values)


@pytest.mark.parametrize("name", [name for name, setting in TABLE.items() if setting.secret])
def test_secrets_are_not_shown(name: str) -> None:
    """A malformed password or key is not repeated, nor is one in a URL."""
    assert "hunter" not in complaint(TABLE[name], "hunter 2\n") != ""
    assert "hunter" not in complaint(TABLE["LLM_JUDGE_SERVER_URL"], "http://me:hunter2@judge:8000") != ""


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A file that a setting names is looked for; a path of several starts where the program does."""
    (tmp_path / "a.py").touch()
    functions = TABLE["REWARD_FUNCTIONS"]
    assert functions.files(f"a.py:{tmp_path}/a.py", tmp_path) == (tmp_path / "a.py",) * 2
    with pytest.raises(InvalidSetting, match="^REWARD_FUNCTIONS: there is no file b.py; correct the path, or unset"):
        functions.files("a.py:b.py", tmp_path)
