"""Finish `make up`: score the bundled samples, and print how to reach the stack."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

from services.gateway import tls
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.processes import SYSTEM_VARIABLES, from_environment
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings
from services.up.plan import RunningStack

SAMPLES = {
    "rules": ROOT / "examples/samples.jsonl",
    "judge": ROOT / "examples/judge_samples.jsonl",
    "embedding": ROOT / "examples/embedding_samples.jsonl",
    "reward-model": ROOT / "examples/reward_model_samples.jsonl",
}
SIZE = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,2})?)([bBmM])(?![a-zA-Z0-9])")
"""Matches the size in a model's name, as in `SmolLM2-135M-Instruct` and `Qwen/Qwen3-0.6B`."""
SMALL_BILLIONS = 2.0
TERMINAL = ("COLUMNS", "NO_COLOR", "TERM")
URL_KEYS = {
    "REWARD_SERVER_URL": ("REWARD_SERVER_API_KEY", "REWARD_SERVER_API_KEYS"),
    "LLM_JUDGE_SERVER_URL": ("LLM_JUDGE_SERVER_API_KEY", "LLM_JUDGE_SERVER_API_KEY"),
    "EMBEDDING_SERVER_URL": ("EMBEDDING_SERVER_API_KEY", "EMBEDDING_SERVER_API_KEY"),
    "REWARD_MODEL_SERVER_URL": ("REWARD_MODEL_SERVER_API_KEY", "LLM_JUDGE_SERVER_API_KEY"),
    "REWARD_CACHE_URL": ("REWARD_CACHE_SECRET", "REWARD_CACHE_SECRET"),
}
"""By client variable with a server's URL: the client variable and the stack's setting with the key. The setting
REWARD_SERVER_API_KEYS may have several keys."""


def score(started: RunningStack, run: RunDir) -> None:
    """Score the bundled samples for the running services with `rewardstack score`, as a user would.

    Args:
        started: the running stack.
        run: run directory of the stack.

    Raises:
        StackError: a sample has a status other than `ok`, or scoring takes too long.
    """
    settings, services = started.settings, started.services
    samples = run.path / "samples.jsonl"
    samples.write_text("".join(path.read_text() for service, path in SAMPLES.items() if service in services))
    seconds = settings.number("MODEL_UP_TIMEOUT" if "judge" in services else "UP_TIMEOUT")
    keys = [URL_KEYS[url] for url in started.addresses if url in URL_KEYS]
    environment = {
        **from_environment(*SYSTEM_VARIABLES, *TERMINAL),
        **started.addresses,
        **({tls.TRUST: trusted} if (trusted := tls.trusted_ca_file(settings)) else {}),
        **{key: settings[source].split(",")[0].strip() for key, source in keys},
    }
    command = [str(Path(sysconfig.get_path("scripts")) / "rewardstack"), "score", str(samples), "--table"]
    try:
        # Use a new session, so that only this process handles Ctrl-C and prints a message.
        done = subprocess.run(command, env=environment, timeout=seconds, check=False, start_new_session=True)
    except subprocess.TimeoutExpired:
        raise StackError(f"scoring the bundled samples takes longer than {seconds} s", "make logs") from None
    if "judge" in services and is_small(started.judge_model):
        say(
            f"judge: {started.judge_model} is a demo model; its scores are not meaningful. Set JUDGE_MODEL for real use"
        )
    if done.returncode != 0:
        raise StackError("not every sample has the status ok", "see the table, and make logs s=rules")


def is_small(model: str) -> bool:
    """Return whether a model's name says that it has fewer than two billion parameters."""
    found = SIZE.search(model)
    return found is not None and (found[2] in "mM" or float(found[1]) < SMALL_BILLIONS)


def _export(assignment: str, comment: str = "") -> None:
    """Print an `export` line to copy. If there is a comment, print it on the line before."""
    if comment:
        say(f"  # {comment}:")
    say(f"  export {assignment}", whole=True)


def print_summary(settings: Settings, urls: Mapping[str, str], logs: str, cache: str = "") -> None:
    """Print the variables to export, the status page's URL, and the location of the logs.

    Args:
        settings: settings of the stack.
        urls: URLs of the services, by the client's environment variable.
        logs: location of the logs, as text.
        cache: URL of the cache in shell syntax; empty if clients cannot reach it.
    """
    say("\nThe stack is up. For trainers and the command line:\n")
    for url, address in urls.items():
        _export(f"{url}={address}")
        key, source = URL_KEYS[url]
        if settings[source]:
            _export(f"{key}=..." + (f"    # one of {source}" if key != source else ""))
        if url == "LLM_JUDGE_SERVER_URL":
            for name in filter(settings.__getitem__, ("LLM_JUDGE_HEADERS", "LLM_JUDGE_QUERY")):
                _export(f"{name}=...")
    if settings["REWARDSTACK_ROUTES"]:
        routes = shlex.quote(os.pathsep.join(map(str, settings.files("REWARDSTACK_ROUTES"))))
        _export(f"REWARDSTACK_ROUTES={routes}", "the routes and judges of the stack")
    if trusted := tls.trusted_ca_file(settings):
        _export(f"{tls.TRUST}={trusted}", "clients on other machines need this file too")
    if cache:
        _export(f"REWARD_CACHE_URL={cache}", "for trainers that score directly")
        if settings["REWARD_CACHE_SECRET"]:
            _export("REWARD_CACHE_SECRET=...", "the secret that signs cached results")
    proxies = {"all", "https" if settings.tls else "http"} & getproxies().keys()
    if proxies and not proxy_bypass(settings.gateway_name):
        _export(f'no_proxy="{settings.gateway_name},127.0.0.1,$no_proxy"', "keeps curl and others from using the proxy")
    _export(f'PATH="{sysconfig.get_path("scripts")}:$PATH"')
    say()
    if "REWARD_SERVER_URL" in urls:
        say(f"status page  {settings.url('PAGE_PORT')}/", whole=True)
    say(f"logs         make logs, in {logs}")
    say("health       make status")
    say("stop         make down")
    _warn_open(settings, urls)


def _warn_open(settings: Settings, urls: Mapping[str, str]) -> None:
    """Warn about services that other machines can reach and that require no key."""
    if settings.gateway_host in ("127.0.0.1", "[::1]"):
        return
    for url in urls:
        source = URL_KEYS[url][1]
        if not settings[source]:
            say(f"warning: {source} is empty: anyone who can reach BIND_ADDRESS can use that service")
