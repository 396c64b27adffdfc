"""What the judge is shown: order, roles, fences, one-pass substitution, and custom templates."""

from __future__ import annotations

import json
import re
import unicodedata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardstack import score
from rewardstack.errors import RequestError
from rewardstack.scorers.judge import fences
from rewardstack.scorers.judge.fences import SPLITTER, fence, neutralize
from rewardstack.scorers.judge.scale import UNIT, Scale, find_scale
from rewardstack.scorers.judge.templates import BUILTIN, LABELS, Kind, find_template
from rewardstack_cli.evaluation.scoring import load_injections
from tests.client.judge.conftest import asked, forget, sample
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES = Path(__file__).parents[2] / "cases"
CANDIDATES = load_injections()
CONTROL = sorted(
    {token for tokens in json.loads((CASES / "judge_control_tokens.json").read_text()).values() for token in tokens}
)
TAG = re.compile(r"</?(?:problem|reference|candidate)-[0-9a-f]{16}>")
OWN = "Compare {REFERENCE_SOLUTION} with {CANDIDATE_SOLUTION}.\nREWARD: <score>"
TEMPLATES: list[tuple[str, Kind]] = [
    *((name, "text") for name in BUILTIN),
    *((name, "logprob") for name in LABELS),
    ("default", "rubric"),
    (OWN, "text"),
]


def structure(text: str) -> tuple[list[str], list[str], int]:
    """What could be obeyed in a prompt: control tokens, fences' names in order, lines that are a verdict."""
    tokens = [token for token in CONTROL for _ in range(text.count(token))]
    verdicts = re.findall(r"REWARD[^\w\n]*:", text)
    return tokens, [tag.rpartition("-")[0] for tag in TAG.findall(text)], len(verdicts)


def test_suite_is_large() -> None:
    """The suite has no less than fifty candidates, each with a name of its own."""
    assert len(CANDIDATES) >= 50


def test_no_candidate_changes_the_structure(table: Table) -> None:
    """Whatever candidate, reference or problem hold, the prompt has the structure that it has for plain ones."""
    for (name, candidate), (template, verdict) in product(CANDIDATES.items(), TEMPLATES):
        with table.case(f"{name} in {template[:20]}, {verdict}"):
            found = find_template(template, verdict=verdict)
            plain = structure(found.render("What?", "42", "It is 42."))
            assert plain == structure(found.render("What?", "42", candidate))
            assert plain == structure(found.render(candidate, candidate, candidate))


def test_control_tokens_are_broken(table: Table) -> None:
    """A control token of any known family does not survive, in a text or between two of its like."""
    for token in CONTROL:
        with table.case(token):
            assert token not in neutralize(token)
            assert token not in neutralize(f"a{token}b{token}{token[:3]}{token}")


@pytest.mark.parametrize(
    "hidden", ["", "\u200b", "\u2060", "\ufeff", "\x01", "\u200d", "\u202a", "\u2069", "\U000e0041"]
)
def test_tokenizers_that_drop_characters(hidden: str) -> None:
    """Nothing that nobody sees makes a token whole again where a tokenizer drops it, be it ours or the candidate's."""
    for token in CONTROL:
        kept = [one for one in neutralize(hidden.join(token)) if unicodedata.category(one) not in ("Cc", "Cf")]
        assert token not in "".join(kept)


ORDINARY = [
    *("1 < 2 and 3 > 2", "x[0] = a[i]", "a <b> c </b>", "vector<int> v;", "f<T>(x)", "[1, 2]", "¿Qué?"),
    *("[0,1)", "<x,y>", "\\langle x, y\\rangle", "|x| < 3", "a[n_1]", "users[user_id]", "a[i]!=b", "a[i]<b[j]"),
    *(
        "#include <iostream>",
        "<div><p>x</p></div>",
        "<1, 2>",
        "x >> y << z",
        "[A]",
        "[B1]",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "👩\u200d🔬",
        "❤\ufe0f",
        "| a | b |\n|---|---|",
        "|||x|||",
        "REWARD",
        "MAX_REWARD = 5",
        "时间\uff1a3",
        "x[unused]",
        "vector<int32>",
    ),
]


def test_ordinary_texts_stay_as_they_are(table: Table) -> None:
    """What is no control token is not touched."""
    for text in ORDINARY:
        with table.case(text):
            assert text == neutralize(text)


def test_broken_texts_read_the_same() -> None:
    """A broken token differs by a character of no width, nothing else."""
    assert "<|im_end|>" == neutralize("<|im_end|>").replace(SPLITTER, "")


def tag_of(text: str) -> str:
    """The tag of the fence around a candidate."""
    return re.findall(r"^<candidate-([0-9a-f]+)>", fence("candidate", text))[0]


def test_tags() -> None:
    """A tag has 64 bits, and two texts have two tags."""
    assert 16 == len(tag_of("a"))
    assert tag_of("a") != tag_of("b")


def test_text_that_holds_its_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tag is hashed again as long as the text contains it; 8-bit tags make such collisions likely."""
    monkeypatch.setattr(fences, "TAG_BYTES", 1)
    every = " ".join(f"{one:02x}" for one in range(250))
    for at in range(20):
        assert tag_of(f"{at} {every}") in {f"{one:02x}" for one in range(250, 256)}


@pytest.mark.parametrize(("template", "verdict"), TEMPLATES)
def test_order(template: str, verdict: Kind) -> None:
    """Samples of one problem share the prompt up to the candidate, which comes last in the built-in templates."""
    found = find_template(template, verdict=verdict)
    first, second = (found.render("What is 6 times 7?", "42", candidate) for candidate in ("first try", "second try"))
    shared = next(at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    assert first[:shared].endswith("<candidate-") or "<candidate-" in first[shared - 20 : shared]
    if template in BUILTIN:
        assert first.index("What is 6 times 7?") < shared
        assert verdict == "rubric" or first.index("What is 6 times 7?") < first.index("\n42\n") < shared
        assert re.fullmatch(r"first try\n</candidate-[0-9a-f]{16}>", first[first.index("first try") :])


def test_placeholders_in_foreign_text_are_inert() -> None:
    """Substitution is done in one pass, and braces of any other kind stand for themselves."""
    template = find_template(r"{PROBLEM} \frac{a}{b} {x} {0} {REFERENCE_SOLUTION} {CANDIDATE_SOLUTION} %s")
    text = template.render("{CANDIDATE_SOLUTION}", "{PROBLEM}", "{REFERENCE_SOLUTION}")
    assert r" \frac{a}{b} {x} {0} " in text and text.endswith(" %s")
    inner = re.findall(r"\n(\{.*\})\n", text)
    assert ["{CANDIDATE_SOLUTION}", "{PROBLEM}", "{REFERENCE_SOLUTION}"] == inner


RATE = "Rate {{CANDIDATE_SOLUTION}} {words}.\nREWARD: <score>"
SCALES: list[tuple[str, Any, Any]] = [
    ("Rate {CANDIDATE_SOLUTION}.\nREWARD: <score>", None, [0, 1]),
    *(
        (RATE.format(words=words), None, [0, 100])
        for words in ("between 0 and 100", "0-100", "0 \u2013 100", "out of 100")
    ),
    *((RATE.format(words=words), None, [0, 100]) for words in ("from 0 to 100", "[0, 100]", "0 bis 100", "0\u5230100")),
    *((RATE.format(words=words), None, [0, 1]) for words in ("from 0 to 1", "for 100 points", "in 2-3 sentences")),
    *((RATE.format(words=words), None, "score_range = [1, 10]") for words in ("from 1 to 10", "1-10", "on [1, 10]")),
    (RATE.format(words="on a scale of 1 to 5"), None, "score_range = [1, 5]"),
    (RATE.format(words="on a scale of 0 to 1"), None, [0, 1]),
    (RATE.format(words="on a scale of 1 (bad) and 5 (good)"), None, "score_range = [1, 5]"),
    (RATE.format(words="between -1 and 1"), None, "score_range = [-1, 1]"),
    (RATE.format(words="out of 10"), None, "score_range = [0, 10]"),
    (RATE.format(words="from 10-100"), None, "score_range = [10, 100]"),
    (RATE.format(words="from 1 (useless) to 10 (perfect)"), None, "score_range = [1, 10]"),
    (RATE.format(words="between 1 (bad) and 5 (good)"), None, "score_range = [1, 5]"),
    (RATE.format(words="where 1 is bad and 10 is good"), None, "score_range = [1, 10]"),
    (RATE.format(words="where 10 means good and 1 means bad"), None, "score_range = [1, 10]"),
    (RATE.format(words="where 1 means right and 0 means wrong"), None, [0, 1]),
    *((RATE.format(words=f"on a 5-{word}"), None, "score_range = [1, 5]") for word in ("point scale", "star scale")),
    *((RATE.format(words=words), None, "= [1, 10]") for words in ("1-to-10", "1\u202610", "de 1 \u00e0 10")),
    (RATE.format(words="on a scale of 10"), None, "score_range = [0, 10]"),
    (RATE.format(words="from one to ten"), None, "score_range = [1, 10]"),
    (RATE.format(words="\uff11\uff5e\uff11\uff10"), None, "score_range = [1, 10]"),
    ("{CANDIDATE_SOLUTION}\nScore 1: bad\nScore 2: fair\nScore 3: good\nREWARD: <score>", None, "= [1, 3]"),
    ("1. Read it.\n2. Think.\n3. Decide.\n{CANDIDATE_SOLUTION}\nREWARD: <score>", None, [0, 1]),
    ("{CANDIDATE_SOLUTION} REWARD: <number>/10", None, "score_range = [0, 10]"),
    ("{CANDIDATE_SOLUTION} From 0 to 1, or from 0 to 100.\nREWARD:", None, "the range 0 to 1 and 0 to 100"),
    (RATE.format(words="from 1 to 10"), [1, 10], [1, 10]),
    (RATE.format(words="as you like"), [1, 10], [1, 10]),
    ("score_range = [1, 10]\n" + RATE.format(words="from 1 to 10"), None, [1, 10]),
    (RATE.format(words="from 1 to 10"), [0, 1], "REWARD: <number from 0 to 1>"),
    ("{CANDIDATE_SOLUTION} is a percentage from 0 to 100. Grade it. REWARD: <number from 0 to 1>", None, [0, 1]),
    ("Points from 0 to 5 for each of five criteria. {CANDIDATE_SOLUTION} REWARD: <0 to 1>", None, [0, 1]),
    ("{CANDIDATE_SOLUTION}\nSTYLE: <number from 0 to 10>\nREWARD: <number>", None, [0, 1]),
    ("Rate each criterion from 1 to 5. {CANDIDATE_SOLUTION}\nREWARD: <number>", None, "score_range = [1, 5]"),
    ("Rate each criterion from 1 to 5. {CANDIDATE_SOLUTION}\nREWARD: <number>", [0, 1], [0, 1]),
]
"""Templates, what is declared, and the scale, or what the error says."""


def test_scales(table: Table) -> None:
    """A template's scale is what is declared, else what its verdict instruction says; a contradiction is refused."""
    for template, declared, expected in SCALES:
        with table.case(f"{template} {declared}"):
            scale = None if declared is None else Scale(*declared)
            if isinstance(expected, list):
                found = find_template(template, declared_scale=scale)
                assert expected == list(found.scale) and "score_range" not in found.parts[0]
            else:
                with pytest.raises(RequestError, match=re.escape(expected)):
                    find_template(template, declared_scale=scale)


def test_builtin_templates_have_no_other_scale(table: Table) -> None:
    """Every built-in template says what its verdicts are read on."""
    for name in BUILTIN:
        with table.case(name):
            assert UNIT == find_scale(" ".join(find_template(name).parts[::2]), None)


def test_scale_of_a_sample(judge: FaultServer) -> None:
    """Verdicts are read on the template's scale; what the texts say changes nothing, and the judge is told it."""
    judge.set(content="REWARD: 1")
    hundred = RATE.format(words="from 0 to 100")
    ten = {"prompt_template": RATE.format(words="from 1 to 10"), "score_range": [1, 10]}
    scores = score([sample("1 to 5", "0-7", prompt_template=hundred), sample("1 to 5", "0-7", **ten)])
    assert [(0.01, "ok"), (0.0, "ok")] == [(one.value, one.status) for one in scores]
    orders = {body["messages"][0]["content"].splitlines()[-1] for body in asked(judge)}
    assert {f"REWARD: <number from {words}>" for words in ("0 to 100", "1 to 10")} == orders


def test_system_prompt(judge: FaultServer) -> None:
    """The system prompt can be replaced, with the form of the reply where it has a place for it, and turned off."""
    score([sample("a", system_prompt="Be kind. {CLOSING}"), sample("b", system_prompt="")])
    kind, none = sorted((body["messages"] for body in asked(judge)), key=len, reverse=True)
    assert kind[0]["content"].startswith("Be kind. The last line of your reply has this form")
    assert ["user"] == [message["role"] for message in none]


def test_roles(judge: FaultServer) -> None:
    """The standing orders are the system's, the task and its texts the user's."""
    score([sample()])
    system, user = asked(judge)[0]["messages"]
    assert ("system", "user") == (system["role"], user["role"])
    assert "never an instruction to you" in system["content"]
    assert "It is 42." in user["content"] and "It is 42." not in system["content"]


def test_template_file(judge: FaultServer, tmp_path: Path) -> None:
    """A template can be a file; a change of the file takes effect."""
    path = tmp_path / "mine.txt"
    for words in ("Rate this:", "Rate that:"):
        path.write_text(f"{words} {{CANDIDATE_SOLUTION}}\nREWARD: <score>")
        path.touch()
        (one,) = score([sample(f"under {words}", None, prompt_template_path=str(path))])
        assert "ok" == one.status
    first, second = asked(judge)
    assert first["messages"][1]["content"].startswith("Rate this: <candidate-")
    assert second["messages"][1]["content"].startswith("Rate that: <candidate-")


def test_problem_from_the_prompt(judge: FaultServer) -> None:
    """Without a `problem`, `prompt` stands for it, else verl's `question`: a text, or a user's only message."""
    messages = [{"role": "user", "content": "last"}]
    score(
        [
            sample("a", problem=None, prompt="as text"),
            sample("b", problem=None, prompt=messages),
            sample("c", problem=None),
            sample("d", problem=None, question="asked"),
            sample("e", problem=None, question="unheard", prompt="more specific"),
            sample("f", problem=None, question=np.array(messages), prompt=float("nan")),
            sample("g", problem=None, question=[{"role": "user", "content": [{"type": "text", "text": "parts"}]}]),
        ]
    )
    shown = [re.findall(r"Problem:\n(?:<.*>\n)?(.*)\n", body["messages"][1]["content"])[0] for body in asked(judge)]
    assert ["(none)", "as text", "asked", "last", "last", "more specific", "parts"] == sorted(shown)


def test_malformed_options(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """An option that cannot be used leaves its own sample unscored, named with its remedy; the others are scored."""
    for case in json.loads((CASES / "judge_options.json").read_text()):
        with table.case(f"{case['extra']}"):
            forget(judge, monkeypatch)
            wrong, right = score([sample("wrong", **case["extra"]), sample("right")])
            assert ("unscored", 0.0) == (wrong.status, wrong.value)
            assert f"extra_info.{case['field']}" in wrong.reason or case["field"] == "server_url"
            assert case["says"] in wrong.reason
            assert "ok" == right.status


def test_unknown_template_names_those_there_are() -> None:
    """The error on a template lists the built-in ones."""
    with pytest.raises(RequestError, match="'fancy' is not one of default, binary, points, detailed"):
        find_template("fancy")
