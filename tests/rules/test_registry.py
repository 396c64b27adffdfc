"""Reward functions by name, and the files that users keep theirs in."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardstack.errors import RouteError, SettingsError, UnknownSourceError
from rewardstack.routing.routes import RULE_OPTIONS
from rewardstack_rules.functions.catalog import load_registry

HEADER = "from rewardstack_rules import reward_function\n"
FUNCTION = "@reward_function\ndef {name}(response, reference=None):\n    return {value}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with one reward function, `mine`."""
    path = tmp_path / "mine.py"
    path.write_text(HEADER + FUNCTION.format(name="mine", value=1))
    return path


def test_own_function(file: Path) -> None:
    """A custom function is registered beside the built-in ones, and isolated."""
    registry = load_registry([file])

    assert (registry.get("mine").isolated, "gsm8k" in registry) == (True, True)


def test_options_of_the_built_in_functions() -> None:
    """The list that clients have of the fields that built-in functions read is theirs."""
    assert {*RULE_OPTIONS} == {field for rule in load_registry([]) for field in rule.fields}


def test_helpers_are_no_reward_functions(file: Path, tmp_path: Path) -> None:
    """What is not marked, and what is marked in another file, is not taken; modules beside the file can be imported."""
    (tmp_path / "beside_mine.py").write_text(file.read_text())
    other = tmp_path / "other.py"
    other.write_text(
        HEADER + "from beside_mine import mine\ndef helper(a, b): ...\n" + FUNCTION.format(name="b", value=1)
    )

    names = {rule.name for rule in load_registry([other])}

    assert names & {"mine", "helper", "b"} == {"b"}


def test_one_name_for_two(file: Path, tmp_path: Path) -> None:
    """Two functions of one name are an error that lists what is known."""
    other = tmp_path / "other.py"
    other.write_text(file.read_text())

    with pytest.raises(RouteError, match=r"two reward functions named 'mine'; rename one .taken: .*gsm8k.*mine"):
        load_registry([file, other])


def test_one_name_for_two_in_a_file(file: Path) -> None:
    """Two functions of one name in one file are an error, too, unless the first one has another variable as well."""
    again = FUNCTION.format(name="mine", value=2)
    file.write_text(file.read_text() + again)
    with pytest.raises(RouteError, match=f"^{file}: there are two reward functions named 'mine'; rename one$"):
        load_registry([file])

    named = "@reward_function(name={0!r})\ndef f(response):\n    return 1.0\n{0} = f\n"
    file.write_text(HEADER + named.format("f1") + named.format("f2"))
    assert {"f1", "f2"} <= {rule.name for rule in load_registry([file])}


def test_name_of_a_built_in_rule(tmp_path: Path) -> None:
    """A custom function cannot take a built-in rule's name."""
    path = tmp_path / "mine.py"
    path.write_text(HEADER + FUNCTION.format(name="math", value=1))

    with pytest.raises(RouteError, match=f"^{path}: there are two reward functions named 'math'; one is built-in: "):
        load_registry([path])


def test_unknown_name() -> None:
    """Asking for a function that is not there is an error with the nearest name, those there are, and the setting."""
    with pytest.raises(
        UnknownSourceError,
        match=r"'gsm9k'; did you mean 'gsm8k'\? available: code, exact_match, .*math_verifier.*; set REWARD_FUNCTIONS",
    ):
        load_registry([]).get("gsm9k")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import not_there_at_all", "ModuleNotFoundError"),
        ("def", "SyntaxError"),
        ("def f(response, reference): ...", "has no reward function; mark one with @reward_function"),
        (HEADER + "@reward_function('f')\ndef f(response): ...", r"write @reward_function\(name='f'\) \(line 2\)"),
        (HEADER + "@reward_function(name='a b')\ndef f(response, reference): ...", "'a b' cannot name"),
        (
            HEADER + "@reward_function\ndef f(text): ...",
            r"mine.py, line 2: reward function 'f': no parameter gets the resp",
        ),
    ],
)
def test_unusable_file(tmp_path: Path, text: str, complaint: str) -> None:
    """A file that cannot be used is an error at the start that says why."""
    path = tmp_path / "mine.py"
    path.write_text(text)

    with pytest.raises((SettingsError, RouteError), match=complaint):
        load_registry([path])
