"""From settings to a server that answers, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from typing import Any

from aiohttp import web

from services.embedding.tei_python import app, model_source
from services.embedding.tei_python.app import Handlers
from services.embedding.tei_python.batches import CPU_TOKENS, Limits
from services.embedding.tei_python.engine import Engine
from services.embedding.tei_python.errors import StartError, ValidationError
from services.embedding.tei_python.metrics import Metrics
from services.embedding.tei_python.model import Model, on_gpu
from services.embedding.tei_python.settings import Settings
from services.embedding.tei_python.tokenization import Tokenization, find_prompt

TEI_VERSION = "1.9.3"
"""The release of TEI whose protocol this is."""
DRAIN_SECONDS = 60.0
BACKLOG = 1024

log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT, then answers what is under way.

    Raises:
        StartError: the port is taken, or the model cannot be loaded.
    """
    listener = _bind(settings.hostname, settings.port)
    source = model_source.find(settings.model_id, settings.revision, on_gpu())
    log.info("Loading %s", source.model_id)
    model = Model(source, settings)
    max_length = _max_length(model.max_length, settings)
    tokenization = Tokenization(model.tokenizer, max_length, model.prompts, _default_prompt(model, settings))
    info = {
        "model_id": source.model_id,
        "model_sha": model.revision,
        "model_dtype": model.dtype,
        "served_model_name": settings.served_model_name or source.model_id,
        "model_type": {"embedding": {"pooling": model.pooling}},
        "max_concurrent_requests": settings.max_concurrent_requests,
        "max_input_length": max_length,
        "max_batch_tokens": settings.max_batch_tokens,
        "tokenization_workers": settings.tokenization_workers,
        "max_batch_requests": settings.max_batch_requests,
        "max_client_batch_size": settings.max_client_batch_size,
        "auto_truncate": settings.auto_truncate,
        "version": TEI_VERSION,
        "sha": None,
        "docker_label": None,
    }
    asyncio.run(_serve(listener, settings, model, tokenization, info))


async def _serve(
    listener: socket.socket, settings: Settings, model: Model, tokenization: Tokenization, info: dict[str, Any]
) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    metrics = Metrics(tokenization.max_length)
    engine = Engine(
        model,
        tokenization,
        _limits(model, settings),
        settings.max_concurrent_requests,
        settings.tokenization_workers,
        metrics,
    )
    hardware = "gpu+optimized" if model.on_gpu else "cpu"
    handlers = Handlers(engine, tokenization, metrics, info, hardware)
    application = app.create(handlers, settings.api_key, settings.payload_limit)
    runner = web.AppRunner(
        application,
        access_log=None,
        handler_cancellation=True,
        auto_decompress=False,
        shutdown_timeout=DRAIN_SECONDS,
    )
    await runner.setup()
    await web.SockSite(runner, listener, backlog=BACKLOG).start()
    log.info("Ready: export EMBEDDING_SERVER_URL=http://%s:%d", *_reachable(listener))
    await stopped.wait()
    log.info("Stopping: answering what is under way")
    await runner.cleanup()
    await engine.stop()


def _limits(model: Model, settings: Settings) -> Limits:
    overhead = model.overhead()
    tokens = settings.max_batch_tokens if model.on_gpu else min(settings.max_batch_tokens, CPU_TOKENS)
    log.info("A forward pass costs %d tokens beside its own", overhead)
    return Limits(tokens, settings.max_batch_requests, overhead)


def _max_length(length: int, settings: Settings) -> int:
    most = settings.max_batch_tokens
    if length <= most:
        return length
    if not settings.auto_truncate:
        raise StartError(
            f"the model takes inputs of {length} tokens, more than --max-batch-tokens {most}: "
            f"set that to at least {length}, or --auto-truncate true"
        )
    log.warning("Inputs are cut to --max-batch-tokens %d, though the model takes %d", most, length)
    return most


def _default_prompt(model: Model, settings: Settings) -> str | None:
    if settings.default_prompt_name is None:
        return settings.default_prompt
    try:
        return find_prompt(model.prompts, settings.default_prompt_name)
    except ValidationError as error:
        raise StartError(str(error)) from None


def _bind(host: str, port: int) -> socket.socket:
    """Takes the address before the model is loaded; nobody is answered until it listens."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise StartError(f"cannot listen on {host} port {port}: {error}; choose another --hostname or --port") from None
    return listener


def _reachable(listener: socket.socket) -> tuple[str, int]:
    """An address by which other machines reach the server, where it listens on all of this one's."""
    host, port = listener.getsockname()[:2]
    if host not in ("0.0.0.0", "::"):
        return (f"[{host}]" if ":" in host else host), port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only asks which address the route would use
            return probe.getsockname()[0], port
        except OSError:
            return socket.gethostname(), port
