"""Settings that are each well-formed and do not fit one another, or this machine."""

from __future__ import annotations

from rewardstack_settings.kinds import SHORTEST_KEY
from services.gateway import tls
from services.stack.errors import StackError
from services.stack.settings import Settings
from services.up.model_servers import EMBEDDING, JUDGE, SERVERS, elsewhere

KEYS = {JUDGE: "LLM_JUDGE_SERVER_API_KEY", EMBEDDING: "EMBEDDING_SERVER_API_KEY"}
"""The setting that holds the key of each model server."""


def require(settings: Settings) -> None:
    """Check what does not depend on the way that the stack runs.

    Raises:
        StackError: two settings contradict each other, and it names both; or a file that one names is not there.
    """
    for name in settings:
        settings.files(name)
    tls.require(settings)
    for server in SERVERS:
        if settings[server.switch] == "on" and elsewhere(server, settings):
            raise StackError(
                f"{server.switch}=on starts a server here, and {server.url} names one elsewhere",
                f"unset {server.url}, or {server.switch}=off",
            )
        key = settings[KEYS[server]]
        if key and len(key) < SHORTEST_KEY and settings[server.switch] != "off" and not elsewhere(server, settings):
            raise StackError(
                f"{KEYS[server]}: its value has fewer than {SHORTEST_KEY} characters",
                "generate one: openssl rand -hex 32",
            )
    if settings["STACK"] in ("native", "apptainer") and settings["MONITORING"] == "on":
        raise StackError(f"MONITORING=on takes Docker, and STACK={settings['STACK']} has none", "choose one of the two")
