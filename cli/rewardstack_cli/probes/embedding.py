"""Probe an embedding server: whether it is up, which model it serves, and whether its vectors are plausible."""

from __future__ import annotations

import time

from rewardstack.errors import RejectedError, ServiceError
from rewardstack.scorers.embedding.options import RequestParams
from rewardstack.scorers.embedding.protocol import (
    EMBED,
    EMBEDDINGS,
    INFO,
    MODELS,
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
from rewardstack_cli.probes.http import LOGS, ProbedService, RemedyNames, probe

TEXTS = ("The cat sits on the mat.", "A cat is sitting on a mat.", "Interest rates rose by a quarter point.")
"""A text, a text with the same meaning, and a text with a different meaning."""

NAMES = RemedyNames("EMBEDDING_SERVER_URL", "EMBEDDING_SERVER_API_KEY", "keys (TEI's setting API_KEY)")


async def probe_embedding(url: str, settings: Settings) -> Finding:
    """Probe the embedding server at `url`.

    Args:
        url: base URL of the server.
        settings: settings with the key to send.
    """
    return await probe(url, settings.embedding_api_key, NAMES, _probe)


async def _probe(server: ProbedService, finding: Finding) -> None:
    await server.ask("/health")
    path, info = await _identify(server)
    finding.version = info.model  # shown instead of a version
    started = time.monotonic()
    first, paraphrase, unrelated = await _request_vectors(server, path, info)
    elapsed = (time.monotonic() - started) * 1000
    alike, unlike = similarities([(first, paraphrase), (first, unrelated)])
    if not alike > unlike:
        message = (
            f"the similarity of two texts with the same meaning ({alike:.3f}) is not higher than that of two texts "
            f"with different meanings ({unlike:.3f})"
        )
        raise ProbeError(message, f"check that the model is for sentence embeddings, with the right pooling; {LOGS}")
    finding.sample = f"similarity {alike:.3f} / {unlike:.3f} in {elapsed:.0f} ms"


async def _identify(server: ProbedService) -> tuple[ApiPath, ServerInfo]:
    """Return the path that computes embeddings, and what the server reports about its model."""
    for path, source, parse in ((EMBED, INFO, parse_info), (EMBEDDINGS, MODELS, parse_models)):
        info = parse(await _ask_if_served(server, source) or b"")
        if info is not None:
            return path, info
    return EMBED, UNKNOWN


async def _request_vectors(server: ProbedService, path: ApiPath, info: ServerInfo) -> list[Vector]:
    body = write_request(path, TEXTS, RequestParams(), info.model)
    reply = await _ask_if_served(server, path, body) if path == EMBED else await server.ask(path, body)
    if reply is None:
        return await _request_vectors(server, EMBEDDINGS, info)
    try:
        results = parse_vectors(path, reply, len(TEXTS))
    except ServiceError as error:
        raise ProbeError(str(error), f"it is not an embedding server, or it is broken; {LOGS}") from error
    vectors = [one for one in results if not isinstance(one, ServiceError)]
    if len(vectors) < len(TEXTS):
        raise ProbeError(f"{path}: a vector contains a value that is not a number", f"its model is broken; {LOGS}")
    return vectors


async def _ask_if_served(server: ProbedService, path: ApiPath, body: bytes | None = None) -> bytes | None:
    """Return the body of the server's reply; None if the server does not serve the path."""
    try:
        return await server.ask(path, body)
    except ProbeError as problem:
        cause = problem.__cause__
        if isinstance(cause, RejectedError) and cause.status in (404, 405):
            return None
        raise
