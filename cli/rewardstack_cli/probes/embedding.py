"""Probe an embedding server: is it up, which model does it serve, and are its vectors plausible."""

from __future__ import annotations

import time

from rewardstack.errors import RejectedError, ServiceError
from rewardstack.scorers.embedding.options import RequestParams
from rewardstack.scorers.embedding.protocol import (
    EMBED,
    INFO,
    OPENAI,
    UNKNOWN,
    ApiPath,
    ServerInfo,
    parse_info,
    parse_models,
    parse_vectors,
    write_request,
)
from rewardstack.scorers.embedding.similarity import Vector, similarities
from rewardstack.settings import Settings
from rewardstack_cli.probes.finding import Finding, ProbeError
from rewardstack_cli.probes.http import LOGS, Names, Probed, probe

TEXTS = ("The cat sits on the mat.", "A cat is sitting on a mat.", "Interest rates rose by a quarter point.")
"""A text, a text with the same meaning, and a text with a different meaning."""

NAMES = Names("EMBEDDING_SERVER_URL", "EMBEDDING_SERVER_API_KEY", "keys (API_KEY of TEI)")


async def probe_embedding(url: str, settings: Settings) -> Finding:
    """Probe the embedding server at `url`.

    Args:
        url: base URL of the server.
        settings: settings with the key to send.
    """
    return await probe(url, settings.embedding_api_key, NAMES, _probe)


async def _probe(server: Probed, finding: Finding) -> None:
    await server.ask("/health")
    path, about = await _identify(server)
    finding.version = about.model
    started = time.monotonic()
    first, same, other = await _vectors(server, path, about)
    elapsed = (time.monotonic() - started) * 1000
    alike, unlike = similarities([(first, same), (first, other)])
    if not alike > unlike:
        message = f"similarity {alike:.3f} for two texts of the same meaning, {unlike:.3f} for two of different meaning"
        raise ProbeError(message, f"is it a model for sentence embeddings, with the right pooling? {LOGS}")
    finding.sample = f"similarity {alike:.3f} / {unlike:.3f} in {elapsed:.0f} ms"


async def _identify(server: Probed) -> tuple[ApiPath, ServerInfo]:
    """Return the path for vectors, and what the server reports about its model."""
    for path, source, read in ((EMBED, INFO, parse_info), (OPENAI, "/v1/models", parse_models)):
        about = read(await _ask_if_served(server, source) or b"")
        if about is not None:
            return path, about
    return EMBED, UNKNOWN


async def _vectors(server: Probed, path: ApiPath, about: ServerInfo) -> list[Vector]:
    body = write_request(path, TEXTS, RequestParams(), about.model)
    reply = await _ask_if_served(server, path, body) if path == EMBED else await server.ask(path, body)
    if reply is None:
        return await _vectors(server, OPENAI, about)
    try:
        found = parse_vectors(path, reply, len(TEXTS))
    except ServiceError as error:
        raise ProbeError(str(error), f"it is not an embedding server, or it is broken; {LOGS}") from error
    vectors = [one for one in found if not isinstance(one, ServiceError)]
    if len(vectors) < len(TEXTS):
        raise ProbeError(f"{path}: a vector contains a value that is not a number", f"its model is broken; {LOGS}")
    return vectors


async def _ask_if_served(server: Probed, path: ApiPath, body: bytes | None = None) -> bytes | None:
    """Return the body of the server's reply; None if the server does not serve the path."""
    try:
        return await server.ask(path, body)
    except ProbeError as problem:
        cause = problem.__cause__
        if isinstance(cause, RejectedError) and cause.status in (404, 405):
            return None
        raise
