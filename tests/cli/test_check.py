"""`rewardstack check`: what it says of services that work, and the remedy for each way they may not."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import redis as redis_client

from rewardstack import __version__
from rewardstack.cache.key import PREFIX
from rewardstack.cache.signature import Signer
from rewardstack.endpoints import VARIABLE
from rewardstack_cli.probes import cache
from tests.support.endpoints import write_endpoints
from tests.support.servers import Redis, free_port
from tests.support.snippets import assert_shown, block

from .conftest import Cli
from .scripted_server import Answer, scripted_server

HEALTHY = Answer({"status": "ok", "version": "9.8.7"})
READY = Answer({"ready": True})
RIGHT = Answer({"scores": [{"value": 1.0, "status": "ok", "reason": ""}]})


def test_nothing_configured_is_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a single variable, and without the rules, the command says which to set."""
    monkeypatch.setitem(sys.modules, "rewardstack_rules", None)
    result = cli("check")
    assert result.status == 2
    assert all(name in result.err for name in ("REWARD_SERVER_URL", "EMBEDDING_SERVER_URL", "REWARD_CACHE_URL"))


def test_a_service_that_a_route_needs_is_named(cli: Cli, tmp_path: Path) -> None:
    """If a route needs a service without a URL, the error names the setting and the route; `--wait` does not wait."""
    (tmp_path / "routes.toml").write_text("""
        [judges.small]
        model = "m"
        [routes]
        other = "gsm8k"
        similar = "embedding_remote"
        mixed.sum = ["gsm8k", "llm_judge_remote"]
        nested.sum = ["mixed", "reward_model"]
    """)
    cli.variables["REWARDSTACK_ROUTES"] = str(tmp_path / "routes.toml")
    with scripted_server(health=HEALTHY, ready=READY, score=RIGHT) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("check", "--wait", "60")
    assert (result.status, result.out.count("FAILED")) == (1, 4), result.out
    for needed in (
        "LLM judge: LLM_JUDGE_SERVER_URL is not set, but needed by the routes mixed, nested",
        "judge small: LLM_JUDGE_SERVER_URL is not set, but needed by the route small",
        "embedding server: EMBEDDING_SERVER_URL is not set, but needed by the route similar",
        "reward model: REWARD_MODEL_SERVER_URL is not set, but needed by the route nested",
    ):
        assert needed in result.out, result.out


def test_misspelled_settings_are_named(cli: Cli) -> None:
    """Each variable that is almost the name of a setting gets a line with the setting that is meant."""
    meant = {"LLM_JUDGE_URL": "LLM_JUDGE_SERVER_URL", "REWARD_SERVER_TIMEOUTS": "REWARD_SERVER_TIMEOUT"}
    with scripted_server(health=HEALTHY, ready=READY, score=RIGHT) as server:
        cli.variables |= {"REWARD_SERVER_URL": server.url, **dict.fromkeys(meant, "1")}
        result = cli("check")
    assert result.status == 0
    for name, setting in meant.items():
        assert f"unknown variable '{name}': did you mean '{setting}'?" in result.err


@pytest.mark.usefixtures("needs_process")
def test_rules_in_the_command_itself(cli: Cli, tmp_path: Path) -> None:
    """Where no reward server is named, rules are tried in process: they work, or the remedy is told."""
    result = cli("check")
    assert (result.status, "this process" in result.out, "gsm8k: 1.0 in" in result.out) == (0, True, True), result.err
    cli.variables["REWARD_FUNCTIONS"] = str(tmp_path / "absent.py")
    result = cli.process("check")
    assert (result.status, "there is no file" in result.out) == (1, True), result.out


def test_a_working_stack_is_ok(scoring: Cli, start_redis: Callable[..., Redis]) -> None:
    """The real reward server and a real Redis are found to work, with their versions."""
    scoring.variables["REWARD_CACHE_URL"] = start_redis().url
    result = scoring("check")
    assert result.status == 0
    assert result.out.count(" ok ") == 2
    assert __version__ in result.out


def test_the_document_shows_what_is_printed(scoring: Cli, start_redis: Callable[..., Redis]) -> None:
    """The table in `docs/cli.md` is what is printed of a stack one of whose reward servers is away."""
    both = f"{scoring.variables['REWARD_SERVER_URL']},http://127.0.0.1:{free_port()}"
    scoring.variables |= {"REWARD_SERVER_URL": both, "REWARD_CACHE_URL": start_redis().url}
    assert_shown(block("docs/cli.md", "", "┏━━━━━━━━━━━━━━━━━━┳"), scoring("check").out)


def test_every_url_and_its_version_is_listed(cli: Cli) -> None:
    """Each URL of the list is tried by itself; one that fails makes the status 1 and hides nothing of the others."""
    with scripted_server(health=HEALTHY, ready=READY, score=RIGHT) as server:
        cli.variables["REWARD_SERVER_URL"] = f"{server.url},http://127.0.0.1:{free_port()}"
        result = cli("check")
    assert result.status == 1
    assert "9.8.7" in result.out
    assert "gsm8k: 1.0 in" in result.out
    assert result.out.count("FAILED") == 1


def test_waiting_for_services(cli: Cli) -> None:
    """`--wait` tries again until every service works, and says what is wrong where that does not come."""
    away = Answer({"error": "not yet"}, 503)
    with scripted_server(away, away, RIGHT, health=HEALTHY, ready=READY) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("check", "--wait", "30")
    assert (result.status, result.out.count("FAILED")) == (0, 0), result.out
    cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{free_port()}"
    result = cli("check", "--wait", "0.1")  # expires
    assert (result.status, result.out.count("FAILED")) == (1, 1), result.out


def test_a_sample_is_scored_with_the_key(cli: Cli) -> None:
    """The probe asks for a score as a trainer would, with the key that is set."""
    with scripted_server(health=HEALTHY, ready=READY, score=RIGHT) as server:
        cli.variables |= {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_API_KEY": "secret-key"}
        result = cli("check")
    assert result.status == 0
    asked = server.asked[-1]
    assert (asked["path"], asked["headers"]["Authorization"]) == ("/v1/score", "Bearer secret-key")
    assert asked["body"]["items"][0]["ground_truth"] == "42"
    assert "secret-key" not in result.out + result.err


def test_servers_of_a_file(cli: Cli, tmp_path: Path) -> None:
    """The file of REWARDSTACK_ENDPOINTS is asked as the environment is; a variable beside it is named."""
    cli.variables[VARIABLE] = str(file := tmp_path / "endpoints.json")
    with scripted_server(health=HEALTHY, ready=READY, score=RIGHT) as server:
        write_endpoints(file, {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_API_KEY": "secret-key"})
        result = cli("check")
    assert result.status == 0 and server.url in result.out and "secret-key" not in result.out + result.err
    assert server.asked[-1]["headers"]["Authorization"] == "Bearer secret-key"
    cli.variables["REWARD_SERVER_URL"] = server.url
    refused = cli("check")
    assert refused.status == 2 and f"{VARIABLE} and REWARD_SERVER_URL are both set" in refused.err


SERVER_TROUBLES = {
    "another service": ({"health": Answer(b"<html>welcome</html>")}, "another service answers there"),
    "another JSON service": ({"health": Answer({"hello": "world"})}, "another service answers there"),
    "no such page": ({"health": Answer({"error": "not found"}, 404)}, "another service answers there"),
    "redirect": ({"health": Answer({}, 301, {"Location": "https://other.example"})}, "to the target of the redirect"),
    "not ready": ({"ready": Answer({"ready": False}, 503)}, "the server is not ready"),
    "gateway without servers": ({"health": Answer(b"bad gateway", 502)}, "a gateway has no server behind it"),
    "no key": ({"score": Answer({"error": "an API key is needed"}, 401)}, "set REWARD_SERVER_API_KEY to one"),
    "fault": ({"score": Answer({"error": "internal error"}, 500)}, "make logs"),
    "not scores": ({"score": Answer({"scores": []})}, "another service answers there"),
    "wrong score": (
        {"score": Answer({"scores": [{"value": 0.0, "status": "failed", "reason": "no process"}]})},
        "it runs but scores wrongly",
    ),
    "closes": ({"health": Answer(cut=True)}, "closed without an HTTP answer"),
}


@pytest.mark.parametrize("problem", SERVER_TROUBLES)
def test_reward_servers_troubles_have_a_remedy(cli: Cli, problem: str) -> None:
    """What is wrong with a reward server is said with what to do about it."""
    answers, remedy = SERVER_TROUBLES[problem]
    with scripted_server(**{"health": HEALTHY, "ready": READY, "score": RIGHT, **answers}) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("check")
    assert result.status == 1
    assert remedy in result.out


def test_a_path_under_which_nothing_answers_has_a_remedy(cli: Cli) -> None:
    """A URL with a path that the server does not have leads to the path, not to host and port."""
    with scripted_server(
        Answer({"error": "there is no endpoint '/foo/health'; available: /health", "field": "path"}, 404)
    ) as server:
        cli.variables["REWARD_SERVER_URL"] = f"{server.url}/foo"
        result = cli("check")
    assert "there is no endpoint '/foo/health'\n    no service answers under the path /foo; remove it" in result.out


def test_a_wrong_key_is_told_from_a_missing_one(cli: Cli) -> None:
    """Where a key is set and refused, the remedy is to correct it."""
    refused = Answer({"error": "an API key is needed"}, 401)
    with scripted_server(health=HEALTHY, ready=READY, score=refused) as server:
        cli.variables |= {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_API_KEY": "old"}
        result = cli("check")
    assert "REWARD_SERVER_API_KEY is not one of the server's keys (REWARD_SERVER_API_KEYS)" in result.out


def test_nobody_there_has_a_remedy(cli: Cli) -> None:
    """A refused connection leads to `make up` and the URL."""
    cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{free_port()}"
    result = cli("check")
    assert "    start it with `make up`, or correct REWARD_SERVER_URL" in result.out


def test_an_unknown_host_has_a_remedy(cli: Cli) -> None:
    """A name that does not resolve is called that."""
    cli.variables |= {
        "REWARD_SERVER_URL": "http://nowhere.invalid:6000",
        "REWARD_CACHE_URL": "redis://nowhere.invalid:6379",
    }
    result = cli("check")
    assert result.status == 1
    assert "host not found; correct REWARD_SERVER_URL" in result.out
    assert "host not found; correct REWARD_CACHE_URL" in result.out


def test_https_where_http_is_spoken_has_a_remedy(cli: Cli) -> None:
    """TLS to a server that speaks plain HTTP is named as the likely mistake."""
    with scripted_server(HEALTHY) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url.replace("http:", "https:")
        result = cli("check")
    assert "use http:// in REWARD_SERVER_URL" in result.out


def test_an_untrusted_certificate_has_a_remedy(needs_openssl: None, cli: Cli, tmp_path: Path) -> None:
    """A certificate that is not trusted here leads to SSL_CERT_FILE."""
    subject = ("-subj", "/CN=127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem", "-days", "1", "-nodes")
    make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", *subject)
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, pytest.raises(OSError):
            context.wrap_socket(connection, server_side=True).recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer, args=(listener,))
        server.start()
        cli.variables["REWARD_SERVER_URL"] = f"https://127.0.0.1:{listener.getsockname()[1]}"
        result = cli("check")
        server.join()
    assert "SSL_CERT_FILE" in result.out


def test_a_working_cache_is_ok(cli: Cli, start_redis: Callable[..., Redis]) -> None:
    """Redis is logged in to, written and read; nothing of the probe stays in it."""
    port = start_redis("--requirepass", "hush").port
    cli.variables["REWARD_CACHE_URL"] = f"redis://:hush@127.0.0.1:{port}/0"
    result = cli("check")
    assert result.status == 0
    assert "written and read in" in result.out
    assert f"redis://***@127.0.0.1:{port}/0" in result.out
    assert "hush" not in result.out + result.err
    size = subprocess.run(
        ("redis-cli", "-p", str(port), "-a", "hush", "dbsize"), capture_output=True, text=True, check=True
    )
    assert size.stdout.strip() == "0"


CACHE_TROUBLES = {
    "no password": (("--requirepass", "hush"), "redis://127.0.0.1:{port}/0", "redis://:PASSWORD@HOST:PORT/0"),
    "wrong password": (("--requirepass", "hush"), "redis://:hash@127.0.0.1:{port}/0", "redis://:PASSWORD@HOST:PORT/0"),
    "no such database": ((), "redis://127.0.0.1:{port}/99", "a database that the server does not have"),
    "full": (("--maxmemory", "100kb"), "redis://127.0.0.1:{port}/0", "maxmemory-policy allkeys-lru"),
    "replica": (("--replicaof", "127.0.0.1", "1"), "redis://127.0.0.1:{port}/0", "the primary's address"),
    "no rights": (
        ("--user", "reader", "on", "nopass", "~*", "+@all", "-set"),
        "redis://reader:any@127.0.0.1:{port}/0",
        "the Redis user lacks a permission",
    ),
}


@pytest.mark.parametrize("problem", CACHE_TROUBLES)
def test_caches_troubles_have_a_remedy(cli: Cli, start_redis: Callable[..., Redis], problem: str) -> None:
    """What is wrong with Redis is said with what to do about it, and without its password."""
    options, url, remedy = CACHE_TROUBLES[problem]
    cli.variables["REWARD_CACHE_URL"] = url.format(port=start_redis(*options).port)
    result = cli("check")
    assert result.status == 1
    assert remedy in result.out
    assert "hash" not in result.out + result.err


@pytest.mark.parametrize(
    ("secret", "writers", "status", "said"),
    [
        ("", [], 0, "written and read in"),
        ("mine", [], 0, "written and read in"),
        ("", ["", ""], 0, "written and read in"),
        ("mine", ["mine", "mine"], 0, "written and read in"),
        ("mine", ["", "mine", "yours"], 0, "2 of 3 values are not signed with this REWARD_CACHE_SECRET"),
        ("", ["", "yours"], 0, "1 of 2 values are signed, and REWARD_CACHE_SECRET is not set"),
        ("mine", ["yours"], 1, "1 of 1 values are not signed with this REWARD_CACHE_SECRET"),
        ("mine", ["", ""], 1, "set REWARD_CACHE_SECRET to the same value"),
        ("", ["yours"], 1, "set REWARD_CACHE_SECRET to the same value"),
    ],
)
def test_seals(
    cli: Cli, start_redis: Callable[..., Redis], secret: str, writers: list[str], status: int, said: str
) -> None:
    """Values that are signed with another secret, or none, are said; that all of them are is a fault."""
    redis = start_redis()
    link = redis_client.Redis.from_url(redis.url)
    for at, writer in enumerate(writers):
        key, value = f"{PREFIX}{at:040}", f'["{at:08}",1.0,"s"]'.encode()
        link.set(key, Signer(writer).sign(key, value) if writer else value)
    cli.variables |= {"REWARD_CACHE_URL": redis.url, "REWARD_CACHE_SECRET": secret}
    result = cli("check")
    shown = " ".join(result.out.split())
    assert (result.status, said in shown.replace(" │ │ │ │ │ │ ", " ")) == (status, True), result.out


@pytest.mark.parametrize(("hangs", "scheme"), [(True, "redis"), (False, "rediss")], ids=["hangs", "no TLS"])
def test_a_silent_cache_has_a_remedy(
    cli: Cli, start_redis: Callable[..., Redis], monkeypatch: pytest.MonkeyPatch, hangs: bool, scheme: str
) -> None:
    """A Redis that accepts and does not answer is given up; it may be one without TLS."""
    monkeypatch.setattr(cache, "TIMEOUT", 0.5)  # expires
    redis = start_redis()
    if hangs:
        redis.freeze()
    cli.variables["REWARD_CACHE_URL"] = redis.url.replace("redis", scheme)
    result = cli("check")
    assert result.status == 1
    assert "the cache hangs" in result.out
    assert "plain redis:// rather than rediss://" in result.out


def test_services_taken_for_each_other_are_told_apart(cli: Cli, start_redis: Callable[..., Redis]) -> None:
    """An HTTP server in REWARD_CACHE_URL and a Redis in REWARD_SERVER_URL are named as another service."""
    with scripted_server(HEALTHY) as server:
        cli.variables["REWARD_CACHE_URL"] = server.url.replace("http:", "redis:")
        cli.variables["REWARD_SERVER_URL"] = start_redis().url.replace("redis:", "http:")
        result = cli("check")
    assert result.out.count("another service") == 2


def test_no_cache_is_no_failure(cli: Cli) -> None:
    """What is not configured is shown as that and does not fail."""
    with scripted_server(health=HEALTHY, ready=READY, score=RIGHT) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("check")
    assert result.status == 0
    assert "REWARD_CACHE_URL is not set" in result.out


def test_a_malformed_variable_is_named(cli: Cli) -> None:
    """A wrong scheme is an error of the settings: it names the variable and shows the form."""
    cli.variables["REWARD_CACHE_URL"] = "http://127.0.0.1:6379"
    result = cli("check")
    assert result.status == 2
    assert "REWARD_CACHE_URL" in result.err
    assert "redis://" in result.err


def test_control_characters_of_a_server_do_not_reach_the_terminal(cli: Cli) -> None:
    """What a server says is shown without escape sequences."""
    with scripted_server(health=HEALTHY, ready=READY, score=Answer({"error": "\x1b]0;owned\x07"}, 400)) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("check")
    assert "owned" in result.out
    assert "\x1b" not in result.out


def test_findings_for_programs(scoring: Cli) -> None:
    """`--json` has each service with what was found, what is wrong and its remedy; the status is the same."""
    scoring.variables["LLM_JUDGE_SERVER_URL"] = f"http://127.0.0.1:{free_port()}"
    result = scoring("check", "--json")
    found = {one["service"]: one for one in json.loads(result.out)["services"]}
    assert result.status == 1
    assert (found["reward server"]["state"], found["reward server"]["problem"]) == ("ok", None)
    assert found["LLM judge"]["state"] == "FAILED" and found["LLM judge"]["remedy"]
    assert (found["cache"]["state"], found["cache"]["variable"]) == ("unset", "REWARD_CACHE_URL")
