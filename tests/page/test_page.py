"""The status page in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from tests.page.browser import Browser
from tests.page.stack import HEADERS, KEY, SCRIPT, Stack
from tests.rules.test_operations import metric
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)

LOOKS = [(width, scheme) for width in (390, 1440) for scheme in ("light", "dark")]
ROWS = """
return Array.from(document.querySelectorAll(`#${arguments[0]} tbody tr`),
  (row) => Array.from(row.cells, (cell) => cell.innerText))
"""
COUNT = """
const plain = window.fetch;
window.asked = 0;
window.fetch = (url, options) => { window.asked += url.includes('/v1/status'); return plain(url, options); };
"""
COUNT_REQUESTS = "return window.asked"
"""Of `/v1/status`, counted as soon as they are sent, since `COUNT` was run."""
INJECT = """
const one = document.createElement(arguments[0]);
if (arguments[0] === 'script') one.text = arguments[1]; else one.innerHTML = arguments[1];
document.body.append(one);
"""
SLOW_FIRST = """
const asked = window.fetch;
window.slow = null;
window.fetch = (url, options) => {
  if (window.slow || !url.includes(arguments[0])) return asked(url, options);
  const reply = new Promise((done) => setTimeout(done, 1500)).then(() => asked(url, options));
  window.slow = reply.then(() => new Promise((done) => setTimeout(done, 300)));
  return reply;
};
"""
"""Has the first question to a path be late by a second and a half; `slow` ends when its answer has been dealt with."""
HIDE = """
Object.defineProperty(document, 'hidden', {value: true});
document.dispatchEvent(new Event('visibilitychange'));
"""
HASTEN = """
window.later = window.setTimeout;
window.setTimeout = (done, milliseconds) => later(done, milliseconds / 10);
refresh();
"""
"""Has all timers of the page, and so its refreshes, run ten times as fast."""
WATCH = """
window.changes = 0;
new MutationObserver((seen) => { window.changes += seen.length; })
  .observe(document.getElementById('standing'), {childList: true, characterData: true, subtree: true});
"""


def opened(browser: Browser, stack: Stack, width: int = 1440, scheme: str = "light") -> None:
    """The page is there, with figures of this moment."""
    browser.look(width, scheme)
    browser.open(stack.server.url, KEY)
    eventually(lambda: browser.run("return heard !== null"))


def rows(browser: Browser, table: str) -> list[list[str]]:
    """The texts of a table."""
    found: list[list[str]] = browser.run(ROWS, table)
    return found


def refreshed(browser: Browser) -> None:
    """The page has figures that were made after this was called."""
    browser.run("return new Promise((done) => setTimeout(done, 1100)).then(refresh)")


def idle(stack: Stack) -> None:
    """Nothing was ever scored."""


def loaded(stack: Stack) -> None:
    """Samples of every route came."""
    stack.load(60, seed=1)


def judge_down(stack: Stack) -> None:
    """The judge closes every connection."""
    stack.judge.kill()
    stack.load(2, seed=2)


def job_running(stack: Stack) -> None:
    """A job waits for a worker, and has some results."""
    stack.submit(40)


SITUATIONS: dict[str, tuple[Callable[[Stack], None], str, str]] = {
    "idle": (idle, "Down: workers", "Nothing has been scored since the server started."),
    "under load": (loaded, "Down: workers", "rule:gsm8k"),
    "a job open": (job_running, "Down: workers", "0 of 40"),
    "judge down": (judge_down, "Down: workers, LLM judge, judge strict", "a server cannot be reached"),
}
"""What is done to a stack, in this order, what the page says of it at once, and what it then holds somewhere."""


@pytest.mark.nightly
@pytest.mark.parametrize("situation", SITUATIONS)
def test_situations(browser: Browser, stack: Stack, situation: str) -> None:
    """Narrow and wide, light and dark: no error, nobody else is asked, and axe-core finds nothing serious."""
    bring, says, holds = SITUATIONS[situation]
    bring(stack)
    browser.errors(), browser.hosts()

    for width, scheme in LOOKS:
        opened(browser, stack, width, scheme)
        eventually(lambda: browser.run("refresh(); return at('standing').textContent") == says, seconds=120)
        eventually(lambda: holds in browser.run("return document.body.innerText"))

        assert browser.run("return document.documentElement.scrollWidth") == width
        assert browser.violations() == []
    assert browser.errors() == []
    assert browser.hosts() == {urlsplit(stack.server.url).netloc}


def test_figures_are_those_of_metrics(browser: Browser, stack: Stack) -> None:
    """Each route's samples by status, those from the cache and those since the start are those of `/metrics`."""
    stack.load(20, seed=3)
    opened(browser, stack)
    refreshed(browser)
    text = stack.server.get("/metrics", headers=HEADERS).text

    shown = rows(browser, "routes")
    assert len(shown) >= 5
    for route, samples, _, _, _, *counts, cached, total, _ in shown:
        told = [metric(text, f'rewardstack_samples_total{{route="{route}",status="{one}"}}') for one in STATUSES]
        assert [float(one.replace(",", "")) for one in counts] == told
        assert number(samples) == number(total) == sum(told)
        assert number(cached) == metric(text, f'rewardstack_cache_hits_total{{route="{route}"}}')


def test_tokens_are_those_of_metrics(browser: Browser, stack: Stack) -> None:
    """Each model's requests and tokens are those of `/metrics`."""
    opened(browser, stack)
    refreshed(browser)
    text = stack.server.get("/metrics", headers=HEADERS).text

    shown = rows(browser, "spending")
    assert shown
    for route, requests, prompt, completion, *_ in shown:
        assert number(requests) == metric(text, f'rewardstack_model_requests_total{{route="{route}"}}')
        for kind, cell in (("prompt", prompt), ("completion", completion)):
            assert number(cell) == metric(text, f'rewardstack_model_tokens_total{{kind="{kind}",route="{route}"}}')


def test_what_came_from_outside_is_shown_and_not_run(browser: Browser, stack: Stack) -> None:
    """A model with a script for a name is named so, and the script does not run."""
    opened(browser, stack)

    models = [row[3] for row in rows(browser, "services")]
    assert any(SCRIPT in model for model in models)
    assert browser.run("return document.querySelectorAll('main script, main img').length") == 0
    assert browser.driver.title == "rewardstack: status"


def test_only_the_page_s_own_script_runs(browser: Browser, stack: Stack) -> None:
    """A script that came into the page all the same would not run."""
    opened(browser, stack)

    browser.run(
        "const one = document.createElement('script'); one.text = \"document.title = 'run'\"; document.body.append(one)"
    )
    browser.run(
        "const one = document.createElement('div'); one.innerHTML = arguments[0]; document.body.append(one)", SCRIPT
    )

    assert browser.driver.title == "rewardstack: status"
    assert any("Content Security Policy" in error for error in browser.errors())


def test_lost_and_found(browser: Browser, stack: Stack) -> None:
    """Without an answer the page says so, and since when; what it showed stays, and it finds the server again."""
    opened(browser, stack)
    before = rows(browser, "services")
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}

    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    browser.run("return refresh()")
    said = browser.run("return at('standing').textContent")
    assert said.startswith("No answer from the reward server since ") and said.endswith("; the figures below are old")
    assert rows(browser, "services") == before and browser.run("return at('main').className") == "old"

    online = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", online)
    browser.run("return refresh()")
    assert not browser.run("return at('standing').textContent").startswith("No answer")
    assert browser.run("return at('main').className") == ""
    browser.errors()


def test_addresses(browser: Browser, stack: Stack) -> None:
    """A port stays in one piece, and of a socket only the host is shown, with its path as a tooltip."""
    opened(browser, stack)
    made = "const made = showAddress(arguments[0]); const port = made.querySelector('.word')"
    show = f"{made}; return [made.textContent, made.title, port && port.textContent]"

    assert browser.run(show, "http://j:2129/v1") == ["http://j:2129/v1", "", ":2129"]
    assert browser.run(show, "http://[::1]:80") == ["http://[::1]:80", "", ":80"]
    assert browser.run(show, "vm unix:/run/rules.sock") == ["vm", "unix:/run/rules.sock", None]
    assert browser.run(show, "2 alive") == ["2 alive", "", None]


def test_failed_samples(browser: Browser, stack: Stack) -> None:
    """Beside the state of the services is the share of failed samples, and below the errors what to do."""
    item = {"data_source": "rule_remote_raises", "solution_str": "1"}
    stack.server.post("/v1/score", {"items": [item]}, headers=HEADERS)
    opened(browser, stack)
    refreshed(browser)

    assert browser.run("return at('failed').textContent").endswith("% of samples failed, last hour")
    assert not browser.run("return at('failed').hidden || at('causes-help').hidden")


def test_equal_rewards_are_listed_once(browser: Browser, stack: Stack) -> None:
    """Of a route whose rewards are all equal no lowest ones are listed."""
    opened(browser, stack)
    ranks = "return extremes({highest: arguments[0], lowest: arguments[1]}).map(([rank]) => rank)"

    assert browser.run(ranks, [{"value": 1}] * 3, [{"value": 1}]) == ["all equal"] * 3
    assert browser.run(ranks, [{"value": 1}], [{"value": 0}]) == ["highest", "lowest"]


def test_what_cannot_be_shown(browser: Browser, stack: Stack) -> None:
    """A fault of the page itself is told as that, not as a server that does not answer, and it asks again."""
    opened(browser, stack)
    browser.run("window.showErrors = () => null.causes")

    browser.run("return refresh()")

    assert browser.run("return at('standing').textContent").startswith("This page cannot show the figures: ")
    assert browser.run("return timer") > 0
    assert any("causes" in error for error in browser.errors())


def test_refreshes_without_reloading(browser: Browser, stack: Stack) -> None:
    """New figures come by themselves; a page that is hidden asks for none; who listens hears changes only."""
    opened(browser, stack)
    browser.run(COUNT)
    browser.run(HASTEN)
    browser.run(WATCH)
    first = browser.run(COUNT_REQUESTS)
    eventually(lambda: browser.run(COUNT_REQUESTS) >= first + 2)
    assert browser.run("return window.changes") == 0

    browser.run(HIDE)
    hidden = browser.run(COUNT_REQUESTS)
    assert browser.run("return new Promise((done) => later(done, 1200)).then(() => 'waited')") == "waited"
    assert browser.run(COUNT_REQUESTS) == hidden


def test_keyboard(browser: Browser, stack: Stack) -> None:
    """By keyboard one skips to the figures, pauses, and opens a plot as a table, which stays open."""
    stack.load(2, seed=4)
    opened(browser, stack)
    refreshed(browser)

    focused = [tab(browser) for _ in range(4)]
    assert focused == ["Skip to content", "Pause", "As a table", "As a table"]
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    refreshed(browser)
    assert browser.run("return document.querySelector('#samples details').open")
    assert browser.run("return document.activeElement.tagName") == "SUMMARY"
    table = browser.driver.find_element(By.CSS_SELECTOR, "#samples details table")
    assert table.text.startswith("Minute ok fallback unscored failed")


def test_rewards(browser: Browser, stack: Stack) -> None:
    """A route's rewards are shown as `/v1/status` has them; one whose rewards are all equal is marked as no signal."""
    stack.load(5, seed=5)
    opened(browser, stack)
    refreshed(browser)
    status = stack.status()

    shown = {row[0].partition("\n")[0]: row for row in rows(browser, "rewards")}
    told = {one["route"]: one["rewards"]["hour"] for one in status["routes"] if one["rewards"]["hour"]["count"]}
    assert shown.keys() == told.keys() and len(told) >= 4
    for route, (name, _, _, flat, count, mean, deviation, *_) in shown.items():
        figures = told[route]
        assert number(count) == figures["count"]
        assert float(mean) == pytest.approx(figures["mean"], abs=1e-3)
        assert float(deviation) == pytest.approx(figures["std"], abs=1e-3)
        assert flat == f"{figures['groups_without_spread']} of {figures['groups']}" or not figures["groups"]
        assert ("all rewards are" in name) == (figures["std"] == 0 and figures["count"] > 1)


def test_examples(browser: Browser, stack: Stack) -> None:
    """Who opens the section sees what was rewarded, as text: a script in a response does not run."""
    item = {"data_source": "gsm8k", "solution_str": f"{SCRIPT}\n#### 1", "ground_truth": "1"}
    stack.server.post("/v1/score", {"items": [item] * 3}, headers=HEADERS)
    opened(browser, stack)
    assert rows(browser, "examples") == []

    browser.run("document.querySelector('#examples-fold > summary').click()")

    eventually(lambda: any(SCRIPT in row[5] for row in rows(browser, "examples")))
    assert browser.violations() == [] and browser.driver.title == "rewardstack: status"


def test_short_on_a_telephone(browser: Browser, stack: Stack) -> None:
    """Four routes fit on 2,500 pixels, and each further row adds at most 150; a plot's single points are seen."""
    stack.load(5, seed=5)
    opened(browser, stack, 390)
    refreshed(browser)

    more = sum(max(0, len(rows(browser, name)) - few) for name, few in (("rewards", 4), ("causes", 3), ("jobs", 1)))
    assert browser.run("return document.documentElement.scrollHeight") <= 2500 + 150 * more
    assert browser.run("return document.querySelectorAll('#latency circle, #latency path[d*=L]').length") >= 4


def test_names_for_screen_readers(browser: Browser, stack: Stack) -> None:
    """Tables stay tables on a narrow screen, each with a name; plots say in words what they show."""
    opened(browser, stack, 390)

    nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {(node.get("role", {}).get("value"), node.get("name", {}).get("value")) for node in nodes}
    assert {("table", "Errors over the last hour"), ("table", "Rewards over the last hour")} <= named
    assert {"main", "banner", "contentinfo"} <= {role for role, _ in named}
    images = [name for role, name in named if role in ("img", "image")]
    assert any(name.startswith("Samples per minute over the last hour: ") for name in images)


def tab(browser: Browser) -> str:
    """The text of what has the focus after one more Tab."""
    ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    text: str = browser.run("return document.activeElement.textContent")
    return text


def number(text: str) -> float:
    """The number that a cell shows."""
    return float(text.replace(",", ""))


STATUSES = ("ok", "fallback", "unscored", "failed")


def explained(browser: Browser, sample: dict[str, Any]) -> str:
    """What the page says of a sample."""
    field = browser.driver.find_element(By.ID, "sample")
    field.clear()
    field.send_keys(json.dumps(sample))
    browser.driver.find_element(By.CSS_SELECTOR, "#explain button").click()
    eventually(lambda: browser.run("return at('explained').textContent || at('sample-error').textContent") != "")
    text: str = browser.run("return at('explained').textContent || at('sample-error').textContent")
    return text


def test_explained(browser: Browser, stack: Stack) -> None:
    """A sample that is pasted is told step by step, and a script in it is shown and not run."""
    opened(browser, stack)

    told = explained(browser, {"data_source": "gsm8k", "solution_str": f"{SCRIPT}\n#### 7", "ground_truth": "7"})

    assert told.startswith("1 route  ") and "found in: ####" in told and SCRIPT in told
    assert browser.run("return at('explained-title').textContent") == "ok: 1"
    assert browser.violations() == [] and browser.driver.title == "rewardstack: status"


def test_a_cached_score_is_explained(browser: Browser, stack: Stack) -> None:
    """A score that the server has is explained as it is, and is computed again only if the box is checked."""
    item = {"data_source": "math", "solution_str": r"\boxed{2x}", "ground_truth": "x+x"}
    stack.server.score(item, headers=HEADERS)
    opened(browser, stack)

    told = explained(browser, item)
    title = browser.run("return at('explained-title').textContent")
    browser.driver.find_element(By.ID, "rescore").click()
    explained(browser, item)

    assert title.startswith("ok: 1") and title.endswith(", from the cache") and "scored again" not in told
    eventually(lambda: "scored again" in browser.run("return at('explained').textContent"))


def test_the_later_of_two_samples_is_explained(browser: Browser, stack: Stack) -> None:
    """Of two samples that are sent one after the other the second is explained, though the first reply comes last."""
    opened(browser, stack)
    first, second = ({"data_source": "gsm8k", "solution_str": f"#### {at}", "ground_truth": "7"} for at in (6, 7))
    browser.run(SLOW_FIRST, "/v1/explain")

    two_in_a_row = "at('sample').value = arguments[0]; explain(); at('sample').value = arguments[1]; return explain()"
    browser.run(two_in_a_row, json.dumps(first), json.dumps(second))
    browser.run("return window.slow")

    assert browser.run("return at('explained-title').textContent") == "ok: 1"


def test_the_later_of_two_jobs_is_listed(browser: Browser, stack: Stack) -> None:
    """So it is with two jobs."""
    opened(browser, stack)
    first, second = stack.submit(2), "0" * 32
    browser.run(SLOW_FIRST, "/jobs/")

    browser.run(
        "at('job').value = arguments[0]; choose(); at('job').value = arguments[1]; return choose()", first, second
    )
    browser.run("return window.slow")

    assert "there is no such job" in browser.run("return at('chosen').textContent")
    assert browser.run("return at('file').accept") == ".jsonl"
    browser.errors()


def test_explained_wrongly(browser: Browser, stack: Stack) -> None:
    """What cannot be explained is refused in the server's words."""
    opened(browser, stack)

    assert "'nowhere'" in explained(browser, {"data_source": "nowhere", "solution_str": "x"})
