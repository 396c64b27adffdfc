"""What each parameter of a reward function gets, by its name."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request
from rewardstack.cache.key import read_fields, rule_key
from rewardstack.errors import RouteError, UnknownSourceError
from rewardstack.pipeline.items import read_request
from rewardstack.score import Item
from rewardstack.scorers.reward_server import encode_item
from rewardstack_rules import Unscored
from rewardstack_rules.functions.binding import REFERENCE, bind
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Registry
from rewardstack_rules.functions.unavailable import UnavailableError
from rewardstack_rules.scoring.task import evaluate
from tests.support.table import Table

FILE = Path(__file__).parent / "functions" / "signatures.py"
HEADER = "import functools\nfrom rewardstack_rules import reward_function\n"
MESSAGES = [{"role": "user", "content": "the question"}]

GOT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("own", {}, {"response": "res", "reference": "ref"}),
    ("swapped", {}, {"response": "res", "reference": "ref"}),
    ("alone", {}, {"response": "res"}),
    ("keyword_only", {}, {"response": "res", "reference": "ref"}),
    ("positional_only", {}, {"response": "res", "reference": "ref"}),
    ("default_reference", {}, {"reference": "ref"}),
    ("default_field", {}, {"tag": "answer"}),
    ("default_field", {"tag": "t"}, {"tag": "t"}),
    ("required_field", {"unit": "m"}, {"unit": "m"}),
    ("rest", {"tag": "t", "unit": "m", "response": "x"}, {"tag": "t", "others": {"unit": "m"}}),
    (
        "two_names",
        {"answer": "of the data set"},
        {"response": "res", "solution_str": "res", "answer": "ref", "ground_truth": "ref"},
    ),
    ("with_prompt", {"prompt": "p", "question": "q"}, {"prompt": "p"}),
    ("with_prompt", {"problem": "q"}, {"prompt": "q"}),
    ("with_prompt", {"prompt": MESSAGES}, {"prompt": MESSAGES}),
    ("annotated", {"args": 1, "digits": 3}, {"reference": "ref", "args": [], "digits": 3}),
    (
        "verl",
        {"split": "test"},
        {"data_source": "openai/gsm8k", "solution_str": "res", "ground_truth": "ref", "extra_info": {"split": "test"}},
    ),
    ("verl", {"data_source": "own"}, {"data_source": "own", "extra_info": {}}),
    ("verl_defaults", {}, {"data_source": "openai/gsm8k", "solution_str": "res", "ground_truth": "ref"}),
    (
        "verl_keywords",
        {"split": "test"},
        {
            "solution_str": "res",
            "kwargs": {
                "data_source": "openai/gsm8k",
                "ground_truth": "ref",
                "extra_info": {"split": "test"},
                "split": "test",
            },
        },
    ),
    ("verl_grader", {"format_score": 0.1}, {"ground_truth": "ref", "method": "strict", "format_score": 0.1}),
    (
        "verl_batch",
        {"scale": 2.0},
        {
            "sources": ["openai/gsm8k"],
            "texts": ["res"],
            "truths": ["ref"],
            "infos": [{"scale": 2.0}],
            "scale": 2.0,
        },
    ),
    ("verl_async", {}, {"solution_str": "res", "ground_truth": "ref"}),
    (
        "trl",
        {"level": 3, "question": "q"},
        {
            "completions": ["res"],
            "kwargs": {
                "prompts": ["q"],
                "question": ["q"],
                "level": [3],
                **{name: ["ref"] for name in REFERENCE},
            },
        },
    ),
    (
        "trl_columns",
        {"prompt": "p", "level": 3, "split": "test"},
        {
            "prompts": ["p"],
            "completions": ["res"],
            "answer": ["ref"],
            "level": [3],
            "kwargs": {"prompt": ["p"], "split": ["test"]},
        },
    ),
    ("trl_columns", {}, {"prompts": [""], "level": None, "kwargs": {}}),
    ("trl_all", {}, {"completion_ids": "Unavailable", "trainer_state": "Unavailable", "solution": ["ref"]}),
    ("trl_all", {"completion_ids": [1, 2]}, {"completion_ids": [[1, 2]]}),
    ("trl_messages", {"question": "q"}, {"question": "q", "texts": ["res"], "ground_truth": ["ref"]}),
    ("trl_messages", {"prompt": MESSAGES}, {"question": "the question", "texts": ["res"]}),
    ("trl_messages_by_a_helper", {}, {"texts": ["res"]}),
    ("SwiftReward", {}, {"completions": ["res"], "solution": ["ref"]}),
    (
        "openrlhf",
        {"prompt": "Hi. "},
        {"queries": ["Hi. res"], "prompts": ["Hi. "], "labels": ["ref"], "responses": ["res"]},
    ),
    ("openrlhf", {"problem": "not the prompt"}, {"queries": ["res"], "prompts": [""], "responses": ["res"]}),
    ("openrlhf_without_prompts", {"prompt": "Hi. "}, {"queries": ["res"], "labels": ["ref"]}),
    ("align_anything", {"prompt": "p"}, {"prompts": ["p"], "responses": ["res"], "golden_responses": ["ref"]}),
    (
        "slime",
        {"prompt": "p", "unit": "m"},
        {
            "prompt": "p",
            "response": "res",
            "label": "ref",
            "metadata": {"prompt": "p", "unit": "m"},
            "unit": "m",
        },
    ),
    ("slime_group", {}, {"response": "res", "label": "ref"}),
    ("areal", {"prompt": "p"}, {"prompt": "p", "completions": "res", "answer": "ref", "prompt_ids": "Unavailable"}),
    ("decorated", {"unit": "km"}, {"response": "res", "reference": "ref", "unit": "km"}),
    ("decorated_above", {}, {"response": "res", "reference": "ref"}),
    ("fixed", {"tag": "t", "unit": "m"}, {"tag": "fixed", "others": {"unit": "m"}}),
    ("from_lambda", {}, {"response": "res", "reference": "ref"}),
    ("weighted", {"unit": "m"}, {"weight": 2, "response": "res", "unit": "m"}),
    ("method", {}, {"weight": 3, "reference": "ref"}),
]
"""A function, a sample's `extra_info`, and (some of) what the function gets."""


@pytest.fixture(scope="module")
def registry() -> Registry:
    """The functions of `signatures.py` beside the built-in ones."""
    return load_registry([FILE])


def run(registry: Registry, name: str, reference: str | None, extra: dict[str, Any]) -> Outcome:
    """Evaluate a function with the fields that it reads of a sample, as the server does."""
    rule, references = registry.get(name), () if reference is None else (reference,)
    item = Item("res", references, extra, "openai/gsm8k")
    return evaluate(rule, item.solution, item.references, read_fields(item, rule.fields))


def test_empty_response_as_messages(registry: Registry) -> None:
    """A function whose helper reads messages is given messages for an empty response, too."""
    outcome = evaluate(registry.get("trl_messages_by_a_helper"), "", (), {})

    assert json.loads(outcome.reason) == {"texts": [""]}


def test_what_each_parameter_gets(registry: Registry, table: Table) -> None:
    """The name of a parameter says what it gets, in the shapes of verl, TRL, OpenRLHF, slime, AReaL and others."""
    for at, (name, extra, expected) in enumerate(GOT):
        with table.case(f"{at} {name}"):
            outcome = run(registry, name, "ref", extra)
            found = json.loads(outcome.reason)
            assert outcome.value == 1.0
            assert {key: found[key] for key in expected} == expected
            if name == "trl" or name.startswith("verl_keywords"):
                assert found["kwargs"].keys() == expected["kwargs"].keys()


CALL = {"role": "assistant", "content": "I look.", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}
RESULT, LAST = {"role": "tool", "content": "7"}, {"role": "assistant", "content": "It is 7."}
TURNS = [CALL, RESULT, LAST]
ASKED = {"role": "user", "content": "p"}
DECODED = (
    "I look.<tool_call>f</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>7</tool_response><|im_end|>\n"
    "<|im_start|>assistant\nIt is 7.<|im_end|>"
)
SPLIT = [{"role": "assistant", "content": "I look.<tool_call>f</tool_call>"}, RESULT, LAST]
CUT = DECODED[: DECODED.index("It is 7.")]
ITEMS = [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]
ITEM_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
GOT_TURNS: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("trl_calls", TURNS, {"question": "p"}, {"calls": [1], "completions": [TURNS], "messages": [[ASKED, *TURNS]]}),
    ("trl_calls", TURNS, {"messages": [ASKED]}, {"calls": [1], "messages": [[ASKED, *TURNS]]}),
    ("trl_calls", TURNS, {"messages": [ASKED, *TURNS]}, {"messages": [[ASKED, *TURNS]]}),
    ("trl_calls", TURNS[:2], {}, {"calls": [1], "completions": [TURNS[:2]], "messages": [TURNS[:2]]}),
    ("trl_calls", "7", {}, {"calls": [0], "completions": [[{"role": "assistant", "content": "7"}]]}),
    (
        "trl_calls",
        ITEMS,
        {},
        {"calls": [1], "completions": [[{"role": "assistant", "content": None, "tool_calls": [ITEM_CALL]}]]},
    ),
    ("trl_calls", DECODED, {}, {"calls": [0], "completions": [SPLIT]}),
    ("trl", DECODED, {}, {"completions": [DECODED]}),
    ("trl", TURNS, {}, {"completions": ["It is 7."]}),
    ("trl", "7<|im_end|>", {}, {"completions": ["7"]}),
    ("openrlhf", DECODED, {"prompt": "p "}, {"queries": [f"p {DECODED}"], "prompts": ["p "], "responses": [DECODED]}),
    ("openrlhf", TURNS, {"prompt": [ASKED]}, {"queries": ["pIt is 7."], "prompts": ["p"]}),
    ("openrlhf_without_prompts", "7<|im_end|>", {}, {"queries": ["7<|im_end|>"]}),
    (
        "all_turns",
        DECODED,
        {"prompt": "p"},
        {"response": "It is 7.", "raw_response": DECODED, "messages": [ASKED, *SPLIT]},
    ),
    ("all_turns", TURNS, {}, {"response": "It is 7.", "raw_response": TURNS, "messages": TURNS}),
    ("all_turns", "7", {}, {"response": "7", "raw_response": "7", "messages": [{"role": "assistant", "content": "7"}]}),
    ("all_turns", CUT, {}, {"response": "", "messages": [*SPLIT[:2], {"role": "assistant", "content": ""}]}),
    ("all_turns", "It is 7.", {"messages": [ASKED, *TURNS[:2]]}, {"messages": [ASKED, *TURNS]}),
    ("all_turns", "7", {"solution_str": "forged"}, {"raw_response": "7"}),
    (
        "all_turns",
        "<search>q</search><information>7</information>It is 7.",
        {},
        {
            "response": "<search>q</search>\nIt is 7.",
            "messages": [
                {"role": "assistant", "content": "<search>q</search>"},
                {"role": "tool", "content": "<information>7</information>"},
                {"role": "assistant", "content": "It is 7."},
            ],
        },
    ),
    ("all_turns", [ASKED, LAST], {"messages": [ASKED]}, {"messages": [ASKED, LAST]}),
    ("areal", DECODED, {"prompt": "p"}, {"completions": DECODED}),
    ("own", DECODED, {}, {"response": "It is 7."}),
    ("verl", DECODED, {"solution_str": "x"}, {"solution_str": "It is 7.", "extra_info": {"solution_str": "x"}}),
]
"""A function, a response, a sample's `extra_info`, and (some of) what the function gets."""


def test_what_a_response_of_several_turns_gives(registry: Registry, table: Table) -> None:
    """TRL's and OpenRLHF's parameters get all turns, and a server gets the same from a client, with the same key."""
    for at, (name, response, extra, expected) in enumerate(GOT_TURNS):
        with table.case(f"{at} {name}"):
            rule = registry.get(name)
            item, _ = read_request(Request("openai/gsm8k", response, "ref", extra))
            given = read_fields(item, rule.fields)
            outcome = evaluate(rule, item.solution, item.references, given)
            found = json.loads(outcome.reason)
            assert {key: found[key] for key in expected} == expected
            record = encode_item("openai/gsm8k", item, rule.fields, {})
            assert isinstance(record, str)
            again, _ = read_request(Request(**json.loads(record)))
            keys = [rule_key(name, "", rule.fields, [one]) for one in (item, again)]
            assert (again.solution, keys[0]) == (item.solution, keys[1])


def test_without_a_reference(registry: Registry, table: Table) -> None:
    """A reference with a default keeps it where there is none; without a default the sample is unscored."""
    optional: dict[str, dict[str, Any]] = {
        "default_reference": {"reference": "a default"},
        "keyword_only": {"reference": None},
        "verl_defaults": {"ground_truth": None},
        "align_anything": {"golden_responses": None},
        "slime": {"label": None},
        "alone": {"response": "res"},
    }
    for name, expected in optional.items():
        with table.case(name):
            found = json.loads(run(registry, name, None, {"unit": "m"}).reason)
            assert {key: found[key] for key in expected} == expected
    for name in ("own", "verl", "trl_columns", "openrlhf", "SwiftReward", "positional_only"):
        with table.case(name):
            outcome = run(registry, name, None, {})
            assert (outcome.value, "reference" in outcome.reason) == (None, True)


def test_fields(registry: Registry, table: Table) -> None:
    """A function is given what it names of `extra_info`, all of it where it can read all, and the prompt's fields."""
    prompt = ("prompt", "problem", "question")
    for name, fields in {
        "own": (),
        "two_names": (),
        "required_field": ("unit",),
        "with_prompt": prompt,
        "openrlhf": ("prompt", "solution_str"),
        "all_turns": ("messages", *prompt, "solution_str"),
        "verl": ("*", "data_source"),
        "verl_defaults": ("*", "data_source"),
        "verl_grader": ("method", "format_score"),
        "rest": ("*",),
        "reserved": ("*", "image_path"),
        "trl_messages": ("*", "solution_str"),
        "align_anything": prompt,
        "slime": ("*",),
    }.items():
        with table.case(name):
            assert registry.get(name).fields == fields


@pytest.mark.parametrize(("name", "field"), [("required_field", "unit"), ("with_prompt", "prompt")])
def test_missing_field(registry: Registry, name: str, field: str) -> None:
    """Without a field that has no default the sample is unscored; the reason names the field and the function."""
    outcome = run(registry, name, "ref", {})

    title = rf"reward function '{name}' \(signatures\.py, line \d+\)"
    remedy = rf"send it, or give the parameter a default \({field}=None\)"
    reason = rf"extra_info\.{field} is missing, but {title} requires it; {remedy}"
    assert (outcome.value, outcome.field) == (None, f"extra_info.{field}")
    assert re.fullmatch(reason, outcome.reason), outcome.reason


def test_parts_of_openrlhf(registry: Registry) -> None:
    """OpenRLHF's dict gives the reward, and its scores and logs as parts."""
    outcome = run(registry, "openrlhf", "ref", {})

    assert (outcome.value, outcome.parts) == (1.0, {"scores": 0.5, "length": 3.0})


def test_best_reference() -> None:
    """A function is called once for each reference, and the best value counts."""
    calls = []

    def one(response: str, reference: str) -> float:
        calls.append(reference)
        return float(response == reference)

    assert bind(one).evaluate("b", ["a", "b", "c"], {}).value == 1.0
    assert calls == ["a", "b", "c"]


def test_called_once_without_a_reference_to_read() -> None:
    """A function that reads no reference is called once, however many there are."""
    calls = []

    def one(response: str, **fields: Any) -> float:
        calls.append(fields)
        return 1.0

    bind(one).evaluate("b", ["a", "b", "c"], {})

    assert calls == [{}]


def test_unscored() -> None:
    """A reference that a function cannot use counts for nothing; if none is of use, the sample is unscored."""

    def picky(response: str, reference: str) -> float:
        if reference == "?":
            raise Unscored("the reference is a question mark")
        return 0.5

    evaluate = bind(picky).evaluate

    assert (evaluate("a", ["?", "b"], {}).value, evaluate("a", ["?"], {})) == (
        0.5,
        Outcome(None, "the reference is a question mark"),
    )


def test_unscored_by_a_function_that_reads_messages() -> None:
    """A function that turns out to read messages can leave the sample unscored."""

    def first(message: dict[str, str]) -> float:
        if not message["content"].strip():
            raise Unscored("blank")
        return 1.0

    def one(completions: list[list[dict[str, str]]]) -> list[float]:
        return [first(completion[-1]) for completion in completions]

    assert [bind(one).evaluate(text, (), {}) for text in ("a", " ")] == [Outcome(1.0), Outcome(None, "blank")]


def test_error_of_a_function_that_reads_text() -> None:
    """A TypeError of a function that reads text is the one that it raised for text."""

    def broken(completions: list[str], **columns: Any) -> list[float]:
        return [completions[0] + 1]  # type: ignore[operator]

    with pytest.raises(TypeError, match='can only concatenate str \\(not "int"\\)'):
        bind(broken).evaluate("a", (), {})


def test_one_loop_for_all_calls() -> None:
    """Calls of an async function share an event loop, to which a client that it keeps is bound."""
    import asyncio

    loops = set()

    async def one(response: str) -> float:
        loops.add(asyncio.get_running_loop())
        return 1.0

    for _ in range(2):
        bind(one).evaluate("a", (), {})

    assert len(loops) == 1


@dataclasses.dataclass
class SlimeSample:
    """Some fields of slime's `Sample`, with slime's defaults."""

    prompt: str = ""
    response: str = ""
    label: str | None = None
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    tokens: list[int] = dataclasses.field(default_factory=list)
    response_length: int = 0
    status: str = "pending"


@pytest.mark.parametrize("has_slime", [False, True])
@pytest.mark.parametrize("field", ["tokens", "response_length", "status"])
def test_field_of_slime_that_a_server_does_not_have(
    has_slime: bool, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a field of slime's sample that the server does not have raises; what the function sets can be read."""
    if has_slime:
        module = types.ModuleType("slime.utils.types")
        module.Sample = SlimeSample  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def reads(args: Any, sample: Any) -> float:
        assert sample.response == "r" and isinstance(sample, SlimeSample) == has_slime and "r" in repr(sample)
        return float(getattr(sample, field, None) is None)

    def sets(args: Any, sample: Any) -> float:
        setattr(sample, field, 3)
        return float(getattr(sample, field))

    remedy = re.escape(f"put the value into the sample's metadata and read sample.metadata['{field}']")
    with pytest.raises(UnavailableError, match=f"sample.{field} is not available: .*{remedy}"):
        bind(reads).evaluate("r", (), {})
    assert bind(sets).evaluate("r", (), {}) == Outcome(3.0)


@pytest.mark.parametrize(
    "use", [len, bool, list, lambda ids: ids[0], lambda ids: ids.global_step, lambda ids: 3 in ids, iter]
)
def test_argument_that_a_server_does_not_have(use: Callable[[Any], Any]) -> None:
    """An argument of TRL or AReaL that the server does not have raises when it is used, and a default applies."""

    def required(completions: list[str], completion_ids: Any) -> float:
        use(completion_ids)
        return 1.0

    def optional(completions: list[str], completion_ids: Any = None) -> float:
        return float(completion_ids is None)

    with pytest.raises(UnavailableError, match=r"completion_ids is not available: .*send it as extra_info.completion"):
        bind(required).evaluate("r", (), {})
    assert bind(optional).evaluate("r", (), {}) == Outcome(1.0)


REFUSED = [
    (
        "@reward_function\ndef f(text, reference): ...",
        r"no parameter gets the response \(parameters: text, reference\); name the parameter for it `response`",
    ),
    (
        "@reward_function\ndef f(): ...",
        r"\(parameters: none\); name the parameter for it",
    ),
    ("@reward_function\ndef f(*args, **kwargs): ...", "use functools.wraps"),
    ("@reward_function\ndef f(reference, **kwargs): ...", "no parameter gets the response"),
    ("@reward_function\ndef f(response, unit, /): ...", "parameter 'unit' is positional-only.*remove the `/`"),
    ("@reward_function\ndef f(x, /, response): ...", "parameter 'x' is positional-only"),
    ("@reward_function\nclass f:\n    pass", "define `__call__`"),
    (
        "@reward_function\nclass f:\n    def __init__(self, a): ...\n    def __call__(self, response): ...",
        r"missing 1 required .*mark an object instead: `name = reward_function\(f\(",
    ),
    ("@reward_function(confined=True)\nasync def f(response): ...", "remove confined=True"),
    (
        "f = reward_function(functools.partial(lambda response: 1.0, response='fixed'))",
        "no parameter gets the response",
    ),
    ("f = reward_function(dict)", "no parameter|signature cannot be read"),
    *(
        (f"@reward_function\ndef f({parameters}): ...", f"did you mean '{meant}'\\? rename it; if you mean the field")
        for parameters, meant in [
            ("response, grund_truth", "ground_truth"),
            ("response, refrence=None", "reference"),
            ("resposne, reference", "response"),
            ("completions, lable, **columns", "label"),
            ("response, reference, promt=''", "prompt"),
            ("solution_str, groundTruth, extrainfo", "extra_info"),
            ("response, *, datasource", "data_source"),
        ]
    ),
    *(
        (f"@reward_function(range={declared})\ndef f(response): ...", "range=.*: expected the lowest and the highest")
        for declared in (
            *("(1.0, 0.0)", "(0.0,)", "('0', '1')", "(0.0, float('nan'))", "(None, 1)", "1"),
            *("(0, 1, 2)", "(False, True)", "(float('inf'), float('inf'))"),
        )
    ),
]


def test_refused(tmp_path: Path, table: Table) -> None:
    """What cannot be bound is refused when the file is loaded: function, file, parameter and remedy are named."""
    for at, (text, complaint) in enumerate(REFUSED):
        path = tmp_path / f"refused_{at}.py"
        path.write_text(HEADER + text)
        with table.case(text), pytest.raises(RouteError) as caught:
            load_registry([path])
        with table.case(f"{text}: message"):
            assert re.search(complaint, str(caught.value)), caught.value
            assert str(caught.value).startswith(str(path)) and "reward function 'f'" in str(caught.value)


@pytest.mark.parametrize(
    "parameters",
    ["response, reference, answer_id", "response, preference", "response, labeled=False", "response, answer, answers2"]
    + [f"response, {name}" for name in ("competition", "collection", "level", "meta_info", "isolation", "reasons")],
)
def test_own_names_of_fields(parameters: str, tmp_path: Path) -> None:
    """A name of a field that only resembles what trainers pass, or that extends it, is no slip."""
    path = tmp_path / "mine.py"
    path.write_text(HEADER + f"@reward_function\ndef f({parameters}): ...\n")

    assert load_registry([path]).get("f").field_parameters


@pytest.mark.parametrize(
    ("declared", "found"),
    [("(0, 1)", (0, 1)), ("[-1, 1.5]", (-1, 1.5)), ("(0, float('inf'))", (0, math.inf)), ("(0.5, 0.5)", (0.5, 0.5))],
)
def test_range(declared: str, found: tuple[float, float], tmp_path: Path) -> None:
    """A range is two numbers in order, which may be infinite."""
    path = tmp_path / "mine.py"
    path.write_text(HEADER + f"@reward_function(range={declared})\ndef f(response): ...\n")

    assert load_registry([path]).get("f").range == found


def test_name_of_a_function_that_there_is_not(registry: Registry) -> None:
    """The error about an unknown name suggests the nearest one."""
    with pytest.raises(UnknownSourceError, match="named 'swaped'; did you mean 'swapped'\\? available: "):
        registry.get("swaped")


def test_line_of_a_refused_function(tmp_path: Path) -> None:
    """A refusal names the line of the function."""
    path = tmp_path / "mine.py"
    path.write_text(HEADER + "\n@reward_function\ndef f(text): ...\n")

    with pytest.raises(RouteError, match=re.escape(f"{path}, line 4: reward function 'f'")):
        load_registry([path])


def test_line_of_an_error_in_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a frozen module of Python names the line of the file that called it, also in the file's folder."""
    path = tmp_path / "mine.py"
    path.write_text(HEADER + "import os\n@reward_function\ndef f(response):\n    return os.environ['NONE_SUCH']\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(KeyError) as raised:
        load_registry([path]).get("f").evaluate("r", (), {})

    assert vars(raised.value)["__notes__"] == ["mine.py, line 6"]


def test_function_of_a_library(tmp_path: Path) -> None:
    """A function that is imported can be marked where it is imported; what another file marked stays that file's."""
    (tmp_path / "library_of_graders.py").write_text(
        HEADER
        + "def grade(solution_str, ground_truth): return 1.0\n@reward_function\ndef other(response): return 1.0\n"
    )
    path = tmp_path / "mine.py"
    path.write_text(
        HEADER + "from library_of_graders import grade, other\nmine = reward_function(name='mine')(grade)\n"
    )

    names = {rule.name for rule in load_registry([path])}

    assert names & {"mine", "grade", "other"} == {"mine"}


def by_default(response: str, tag: str = "answer") -> float:
    return 1.0


@pytest.mark.parametrize("function", [by_default, functools.partial(by_default), functools.lru_cache(by_default)])
def test_kinds_of_callables(function: Callable[..., Any]) -> None:
    """Whatever wraps a function, its parameters are read."""
    assert bind(function).field_parameters == ("tag",)
