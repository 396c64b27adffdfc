"""What `make up` is to run: configuration, environment, names and addresses, all from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from services.stack import ports
from services.stack.given import GIVEN_TO, HUB, from_environment
from services.stack.rundir import RunDir, Running, boot_id
from services.stack.settings import Settings
from services.up import model_servers
from services.up.model_servers import EMBEDDING, SERVERS, ModelServer
from services.up.native import model_programs, programs, render


@dataclass(frozen=True)
class Stack:
    """What is to run.

    Args:
        files: text of the configuration by name.
        given: what the services are given of the environment.
        names: of the services, in the order in which they start.
        urls: where clients find them, by the client's variable.
        ports: address and port by name.
        running: what is remembered of it, given the session.
    """

    files: Mapping[str, str]
    given: Mapping[str, str]
    names: list[str]
    urls: Mapping[str, str]
    ports: Mapping[str, tuple[str, int]]
    running: Callable[[int], Running]


def describe(
    settings: Settings, run: RunDir, found: Mapping[str, str], chosen: Sequence[ModelServer], running: Running | None
) -> Stack:
    """What is to run.

    Args:
        settings: of the stack.
        run: its directory.
        found: paths of nginx and redis-server.
        chosen: model servers.
        running: what runs already.

    Raises:
        StackError: a model server's program cannot be had.
    """
    backend = model_programs.backend_port(running)
    models = model_programs.programs(settings, run, chosen, backend)
    urls = {"REWARD_SERVER_URL": settings.url()}
    urls |= {server.url: address for server in SERVERS if (address := model_servers.url(server, settings, chosen))}
    files = render.configuration(settings, run, found, models)
    given = _for_services(settings, run, urls)
    scoring = [program.name for program in (*models, *programs.workers(settings))]
    names = ["cache", "queue", "rules", *scoring, "gateway"]
    wanted = ports.wanted(settings, ["REWARD_PORT", *(server.port for server in chosen)])
    if EMBEDDING in chosen:
        wanted[ports.EMBEDDING_BACKEND] = (ports.LOOPBACK, backend)
    remembered = partial(
        Running,
        boot=boot_id(),
        settings=render.digest({**files, **given}),
        code=render.code_digests(settings),
        host="localhost" if settings.open_to_all else settings["BIND_ADDRESS"],
        ports={name: port for name, (_, port) in wanted.items()},
        services=names,
    )
    return Stack(files, given, names, urls, wanted, remembered)


def _for_services(settings: Settings, run: RunDir, urls: Mapping[str, str]) -> dict[str, str]:
    derived = {
        **settings,
        **{server.url: urls.get(server.url, "") for server in SERVERS},
        **from_environment(*HUB),
        "API_KEY": settings["EMBEDDING_SERVER_API_KEY"],
        "PROMETHEUS_MULTIPROC_DIR": str(run.path / "tmp/metrics"),
        "REWARD_CACHE_URL": settings.cache_url,
        "REWARD_QUEUE_URL": settings.queue_url,
        "REWARD_SOCKET": str(run.socket("rules")),
        "VLLM_API_KEY": settings["LLM_JUDGE_SERVER_API_KEY"],
    }
    given = {name: derived[name] for names in GIVEN_TO.values() for name in names if derived.get(name)}
    return {**given, "RUN_DIR": settings["RUN_DIR"]}
