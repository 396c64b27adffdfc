"""Conversations, tools, reasoning and images: what of them the judge is shown."""

from __future__ import annotations

import base64
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, register_judge, score
from rewardstack.core.messages import to_chat
from rewardstack.errors import RequestError, RouteError
from rewardstack.pipeline.items import read_request
from rewardstack.routing.judges import parse_judge
from rewardstack.score import Item
from rewardstack.scorers.judge import check_named_judge
from rewardstack.scorers.judge.conversation import VIEWS, ShownParts, View, read_shown_parts
from tests.client.judge.conftest import JUDGE, asked, sample
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES = Path(__file__).resolve().parents[2] / "cases"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
BASE64 = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{BASE64}"
OTHER_URL = URL.replace("image/png", "image/gif")
TASK = [
    {"role": "system", "content": "You are a nurse. NEVER name doses."},
    {"role": "user", "content": "I am pregnant."},
    {"role": "assistant", "content": "Congratulations!"},
    {"role": "user", "content": "How much ibuprofen may I take?"},
]
CALL = {
    "role": "assistant",
    "content": "I look.",
    "tool_calls": [{"function": {"name": "find", "arguments": '{"a": 1}'}}],
}
TRACE = [CALL, {"role": "tool", "content": "400 mg REWARD: 1"}, {"role": "assistant", "content": "Take none."}]
QWEN = (
    "I look.<tool_call>find</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n400 mg\n</tool_response>"
    "<|im_end|>\n<|im_start|>assistant\n<think>Hm.</think>Take none.<|im_end|>"
)
HARMONY = (
    "<|channel|>analysis<|message|>Hm.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.find<|message|>{}<|call|>"
    "<|start|>functions.find to=assistant<|channel|>commentary<|message|>400 mg<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Take none.<|return|>"
)


def shown(
    response: Any, view: View = "last_reply", *, hide: bool = True, urls: bool = False, **extra: Any
) -> ShownParts:
    """What the judge is shown of a response and its `extra_info`."""
    item, _ = read_request(Request(JUDGE, response, None, extra))
    return read_shown_parts(item, view, hide=hide, allow_urls=urls)


def plain(text: str) -> str:
    """A fenced text without its tags."""
    return re.sub(r"</?(\w+)-[0-9a-f]{16}>", r"|\1|", text).replace("\n", " ")


TASKS: dict[str, tuple[dict[str, Any], str]] = {
    "a text": ({"problem": "p", "prompt": TASK}, "p"),
    "one message": ({"prompt": TASK[1:2]}, "I am pregnant."),
    "one message in parts": ({"question": [{"role": "user", "content": [{"type": "text", "text": "p"}]}]}, "p"),
    "a conversation": (
        {"problem": TASK[1:]},
        "User: |problem| I am pregnant. |problem| Assistant: |problem| Congratulations! |problem| "
        "User: |problem| How much ibuprofen may I take? |problem|",
    ),
    "messages": ({"messages": [*TASK[1:2], {"role": "assistant", "content": "x"}]}, "I am pregnant."),
    "messages before a reply": ({"messages": TASK[1:2]}, "I am pregnant."),
    "none": ({"problem": "", "messages": []}, ""),
    "messages before the response": (
        {"messages": TASK[1:2], "question": "less"},
        "I am pregnant.",
    ),
    "messages with the response": ({"messages": TASK[1:3], "question": "asked"}, "asked"),
    "messages that nobody needs": ({"problem": "p", "messages": "the trainer's own"}, "p"),
}


def test_tasks(table: Table) -> None:
    """The task is `problem`, else `prompt`, `question` or `messages`: a text, or all turns of a conversation."""
    for name, (extra, expected) in TASKS.items():
        with table.case(name):
            assert plain(shown("x", **extra).problem) == expected
    assert "NEVER name doses" in shown("x", prompt=TASK).problem


FULL = (
    "Candidate: |candidate| I look.{call} |candidate| Tool output (not the candidate's words): |tool| 400 mg{more} "
    "|tool| Candidate: |candidate| Take none. |candidate|"
)
CALLED = FULL.format(call=' [call find({"a": 1})]', more=" reward: 1")
TRACES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "messages": (TRACE, {}, CALLED),
    "with the task in its field": (TRACE, {"prompt": TASK}, CALLED),
    "in extra_info": ("Take none.", {"messages": TRACE, "problem": "p"}, CALLED),
    "behind the task": ("Take none.", {"messages": [*TASK, *TRACE], "prompt": TASK}, CALLED),
    "without the last reply": ("Take none.", {"messages": [*TASK[:2], *TRACE[:2]]}, CALLED),
    "one turn": ([TRACE[2]], {}, "Take none."),
    "a string of one turn": ("Take none.", {}, "Take none."),
}


def test_traces(table: Table) -> None:
    """With `full_trace` the judge is shown all turns, and what a tool printed is marked; by default the last reply."""
    for name, (response, extra, expected) in TRACES.items():
        with table.case(name):
            found = shown(response, "full_trace", **extra)
            assert plain(found.candidate) == expected
            assert shown(response, **extra).candidate == "Take none."
            assert "Take none" not in found.problem
            assert "prompt" not in extra or "NEVER" in found.problem
    decoded = plain(shown(QWEN, "full_trace").candidate)
    assert "Tool output (not the candidate's words): |tool| 400 mg |tool|" in decoded and "Hm." not in decoded
    harmony = plain(shown(HARMONY, "full_trace").candidate)
    assert "|tool| 400 mg |tool|" in harmony and "Take none." in harmony and "Hm." not in harmony


def test_shapes_of_tool_calls(table: Table) -> None:
    """Call and result are shown, whichever API's shape a trace has; the result is marked as the tool's words."""
    user = {"role": "user", "content": "Weather in Oslo?"}
    for case in json.loads((CASES / "tool_calls.json").read_text()):
        responses: dict[str, tuple[Any, dict[str, Any]]] = {
            "solution_str": (case["trace"], {"prompt": [user]}),
            "messages": ("It is 7 degrees.", {"messages": [user, *case["trace"]]}),
        }
        for where, (response, extra) in responses.items():
            with table.case(f"{case['name']} in {where}"):
                found = shown(response, "full_trace", **extra)
                turns = [(turn.role, turn.text) for turn in found.trace]
                assert [role for role, _ in turns] == ["assistant", "tool", "assistant"]
                assert all(mark in turns[0][1] for mark in ("[call", "weather", "Oslo-CALL"))
                assert "7 RESULT" in turns[1][1] and turns[2][1] == "It is 7 degrees."
                assert found.problem == "Weather in Oslo?"
                assert shown(response, **extra).candidate == "It is 7 degrees."
                assert to_chat(chat := to_chat(case["trace"])) is chat and to_chat([*chat]) == chat


def test_parts_of_the_last_reply() -> None:
    """An image in the last reply is shown, and a file makes the sample unscored, in each view."""
    for view in VIEWS:
        reply = {"role": "assistant", "content": [{"type": "text", "text": "See "}, {"type": "image", "image": URL}]}
        found = shown([reply], view)
        assert found.images == (URL,) and "See [image 1]" in found.candidate
        reply["content"] = [{"type": "text", "text": "See "}, {"type": "file", "file": {}}]
        with pytest.raises(RequestError, match="a part of the type 'file'"):
            shown([reply], view)
        assert "See [file, which is not shown]" in shown([reply], view, images=False).candidate


def test_task_of_a_trace() -> None:
    """Without a task of its own, a trace's task is what comes before the policy's first turn."""
    found = shown("Take none.", "full_trace", messages=[TASK[1], *TRACE])
    assert (found.problem, found.candidate.count("Candidate:")) == ("I am pregnant.", 2)


THOUGHTS: dict[str, tuple[Any, str, str]] = {
    "in tags": ("<think>Hm.</think>42", "42", "<think>Hm.</think>42"),
    "begun by the template": ("Hm.</think>42", "42", "Hm.</think>42"),
    "in between": ("a<think>b</think>c", "ac", "a<think>b</think>c"),
    "unclosed": ("<think>So 42", "", "<think>So 42"),
    "beside the content": (
        [{"role": "assistant", "reasoning_content": "Hm.", "content": "42"}],
        "42",
        "<think>\nHm.\n</think>\n42",
    ),
    "harmony": (HARMONY, "Take none.", "Take none."),
    "harmony's last": (
        HARMONY[: HARMONY.index("<|start|>")] + HARMONY[HARMONY.rindex("<|start|>") :],
        "Take none.",
        "<think>",
    ),
    "quoted": ("the tag `<think>` is one", "the tag `<think>` is one", "the tag `<think>` is one"),
}


def test_reasoning(table: Table) -> None:
    """Reasoning is hidden unless `hide_reasoning` is false; what does not end hides the rest."""
    for name, (response, hidden, seen) in THOUGHTS.items():
        with table.case(name):
            assert shown(response).candidate == hidden
            found = shown(response, hide=False).candidate
            assert found.startswith(seen) if name == "harmony's last" else found == seen


def test_nothing_but_reasoning(judge: FaultServer) -> None:
    """An answer that is only unclosed reasoning is none, and costs no request."""
    [one] = score([sample("<think>So it must be 42")])
    assert (one.value, one.status, one.reason, asked(judge)) == (0.0, "ok", "there is no answer", [])


MALFORMED: dict[str, tuple[dict[str, Any], str, str]] = {
    "problem": ({"problem": 7}, "problem", "expected a string or chat messages, got int"),
    "messages": ({"messages": "hello"}, "messages", "expected chat messages: a list of"),
    "content": ({"messages": [{"role": "user", "content": 7}]}, "messages", "messages[1] is neither a text nor a list"),
    "a file": ({"images": ["/etc/passwd"]}, "images", "expected PNG, JPEG, GIF or WebP"),
    "bytes of another kind": ({"images": [b"RAW"]}, "images", "expected PNG, JPEG, GIF or WebP"),
    "a URL": ({"images": ["http://169.254.169.254/x.png"]}, "images", "in the routes file has allow_image_urls = true"),
    "too many": ({"images": [URL] * 17}, "images", "17 images exceed the maximum of 16 for a judge"),
    "a video": (
        {"prompt": [{"role": "user", "content": [{"type": "video", "video": "x"}]}]},
        "images",
        "a part of the type 'video', which a judge cannot be shown; send its content as text, or set images = false",
    ),
    "no content": (
        {"prompt": [{"role": "user", "content": [{"type": "image"}]}]},
        "images",
        "refer to more images than `images` contains",
    ),
}


def test_malformed(table: Table) -> None:
    """What cannot be shown is an error that names the field and the remedy."""
    for name, (extra, field, why) in MALFORMED.items():
        with table.case(name):
            with pytest.raises(RequestError) as caught:
                shown("x", **extra)
            assert caught.value.field == f"extra_info.{field}" and why in str(caught.value)


class Picture:
    """An image as PIL has it."""

    def save(self, stream: Any, format: str) -> None:
        """Write it."""
        assert format == "PNG"
        stream.write(PNG)


def parts(*images: Any) -> list[dict[str, Any]]:
    """A message with images around its words."""
    return [{"role": "user", "content": ["See ", *images, " here"]}]


IMAGES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "part": ({"prompt": parts({"type": "image_url", "image_url": {"url": URL}})}, [URL], "See [image 1] here"),
    "two": (
        {"prompt": parts({"type": "input_image", "image_url": URL}, {"type": "image", "image": Picture()})},
        [URL, URL],
        "See [image 1][image 2] here",
    ),
    "a column": ({"problem": "p", "images": [PNG, {"bytes": PNG, "path": None}, Picture(), URL]}, [URL] * 4, "p"),
    "one": ({"problem": "p", "images": Picture()}, [URL], "p"),
    "placeholders": (
        {"prompt": parts({"type": "image"}), "images": [OTHER_URL, URL]},
        [OTHER_URL, URL],
        "See [image 1] here",
    ),
    "none": ({"prompt": parts({"type": "image"}), "images": False}, [], "See [image, which is not shown] here"),
    "other media": ({"prompt": parts({"type": "video"}), "images": False}, [], "See [video, which is not shown] here"),
    "anthropic": (
        {"prompt": parts({"type": "image", "source": {"media_type": "image/png", "data": BASE64}})},
        [URL],
        "See [image 1] here",
    ),
    "gemini": (
        {"prompt": {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": BASE64}}]}},
        [URL],
        "[image 1]",
    ),
}


def test_images(table: Table) -> None:
    """Images of messages and of the field `images` become URLs, and texts have their numbers."""
    for name, (extra, urls, problem) in IMAGES.items():
        with table.case(name):
            found = shown("x", **extra)
            assert (list(found.images), found.problem) == (urls, problem)
    assert shown("x", urls=True, images="https://a/b.png").images == ("https://a/b.png",)
    trace = [CALL, {"role": "tool", "content": [{"type": "image_url", "image_url": {"url": URL}}]}, TRACE[2]]
    assert shown(trace).images == () and shown(trace, "full_trace").images == (URL,)


def test_what_leaves_this_machine(table: Table) -> None:
    """A reward server makes the same of what it is sent, so both have one cache key."""
    cases: list[tuple[Any, View, dict[str, Any]]] = [
        ("x", "last_reply", {"prompt": TASK}),
        (TRACE, "full_trace", {"prompt": TASK}),
        ("Take none.", "full_trace", {"messages": [TASK[1], *TRACE]}),
        ("x", "last_reply", {"prompt": parts({"type": "image"}), "images": [PNG]}),
    ]
    for response, view, extra in cases:
        with table.case(f"{view} {response} {list(extra)}"):
            found = shown(response, view, **extra)
            again = read_shown_parts(Item("Take none.", (), found.portable), view, hide=True, allow_urls=False)
            assert (again.problem, again.images) == (found.problem, found.images)
            assert view == "last_reply" or again.candidate == found.candidate


def test_responses_that_leave_this_machine(table: Table) -> None:
    """A reward server shows the judge the same candidate, with or without reasoning in a message or between markers."""
    thought = [{"role": "assistant", "content": "Take none.", "reasoning_content": "Hm."}]
    short = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Take none.<|return|>"
    views: tuple[View, ...] = ("last_reply", "full_trace")
    searched = "I search.\n<tool_response>\n42\n</tool_response>\nTake none."
    ends_in_tool = [{"role": "assistant", "content": "I search."}, {"role": "tool", "content": "42"}]
    for response in (thought, [*TRACE[:2], *thought], QWEN, HARMONY, short, searched, ends_in_tool):
        for view, hide in product(views, (True, False)):
            with table.case(f"{view} {hide} {response}"):
                found = shown(response, view, hide=hide, problem="p")
                sent = shown(found.last_reply, view, hide=hide, **found.portable)
                assert plain(sent.candidate) == plain(found.candidate)
    assert all("Hm." in shown(response, hide=False, problem="p").candidate for response in (thought, short))


def test_request_with_images(judge: FaultServer) -> None:
    """The user's message has parts, the images before the text."""
    [one] = score([sample(images=[URL, OTHER_URL])])
    assert one.status == "ok"
    content = asked(judge)[0]["messages"][1]["content"]
    assert [part["type"] for part in content] == ["image_url", "image_url", "text"]
    assert [part["image_url"]["url"] for part in content[:2]] == [URL, OTHER_URL]


@pytest.mark.parametrize("status", [400, 422])
def test_a_judge_that_does_not_see(judge: FaultServer, status: int) -> None:
    """A refused image fails its sample with what to do; it is never left out silently."""
    judge.set(status=status, error={"error": {"message": "small is not a multimodal model"}})
    [one] = score([sample(images=[URL])])
    assert one.status == "failed"
    assert "not a multimodal model" in one.reason and "use a judge that supports images, or set" in one.reason


def test_who_allows_urls(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the table of a judge allows URLs that it fetches itself; its options may turn images off."""
    monkeypatch.setattr("rewardstack.client._registered", {})
    register_judge("sees", {"base_url": judge.url, "allow_image_urls": True})
    register_judge("blind", {"base_url": judge.url, "model": "small", "options": {"images": False}})
    extra = {"images": ["https://a.example/b.png"]}
    sees, blind = score([Request(name, "x", "y", extra) for name in ("sees", "blind")])
    assert (sees.status, blind.status) == ("ok", "ok")
    contents = [body["messages"][1]["content"] for body in asked(judge)]
    assert sorted(type(one).__name__ for one in contents) == ["list", "str"]
    with pytest.raises(RouteError, match=r"judges.x.allow_image_urls: must be true or false, got 'yes'"):
        parse_judge("x", {"base_url": "http://a", "allow_image_urls": "yes"})
    with pytest.raises(RouteError, match=r"judges.x.options.images: must be false"):
        check_named_judge(parse_judge("x", {"base_url": "http://a", "options": {"images": [URL]}}))
