"""Store the samples of a new job in Redis, chunk by chunk. Workers see the job only after all samples are stored."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from operator import itemgetter

from rewardstack.core.groups import GroupOf, no_group, split_batches
from rewardstack.errors import OverloadError
from rewardstack.score import Request
from rewardstack_rules.jobs import scripts
from rewardstack_rules.jobs.codec import fields_of, pack_input
from rewardstack_rules.jobs.keys import JobKeys
from rewardstack_rules.jobs.limits import job_too_large, too_many_bytes
from rewardstack_rules.jobs.link import FULL, RedisClient

CHUNK_CHARACTERS = 2**22
"""Maximum number of characters of a chunk, unless a single sample or group has more."""
UNFINISHED_SECONDS = 3600
"""Seconds without a new chunk after which an unfinished submission expires, because its server may have died."""
ENTRY_BYTES = 2048
"""Approximate memory, in bytes, that a chunk needs in the queue in addition to its samples."""
INPUT_SHARE = 0.5
"""Share of the queue's memory up to which samples are accepted. The rest is for results and workers."""


class Submission:
    """The samples of a job that `scripts.PUBLISH` has not published yet.

    Args:
        redis: client of the queue's Redis.
        keys: keys of the job.
        chunk_size: maximum number of samples in a chunk, unless a single group has more.
        limit_bytes: maximum bytes of all samples and results of the job's tenant in the queue; None for no limit.
        group_of: returns the group of a sample; the members of a group, which must be consecutive, are in one chunk.
    """

    def __init__(
        self,
        redis: RedisClient,
        keys: JobKeys,
        chunk_size: int,
        limit_bytes: int | None,
        group_of: GroupOf[Request] = no_group,
    ) -> None:
        self.items = self.bytes = self.chunks = 0
        self.sources: Counter[str] = Counter()
        self.starts: list[int] = []
        """The position of each stored chunk's first sample in the job."""
        self._redis = redis
        self._keys = keys
        self._chunk_size = chunk_size
        self._limit_bytes = limit_bytes
        self._group_of = group_of
        self._store_script = redis.register_script(scripts.STORE)
        self._discard = redis.register_script(scripts.DISCARD)
        self._digest = blake2b(digest_size=16)

    @property
    def digest(self) -> str:
        """The hash of all samples. It depends neither on the format of the request nor on the size of the chunks."""
        return self._digest.hexdigest()

    def write(self, requests: Iterable[Request]) -> None:
        """Write the samples to the queue. On an error, discard all of them.

        Raises:
            RedisError: the queue does not answer, or refuses the samples.
            OverloadError: the queue is too full.
            LimitReached: the tenant would exceed its limit; `JobTooLarge` if this job alone exceeds the limit.
            RequestError: a group is too large, or its members are not consecutive and would be in different chunks.
            Exception: anything that iterating over `requests` raises.
        """
        try:
            for chunk in self._chunks(requests):
                self._store(chunk)
        except BaseException:
            self.discard()
            raise

    def read(self, requests: Iterable[Request]) -> None:
        """Compute the samples' digest without writing them, because an earlier job has used the idempotency key.

        Raises:
            RequestError: as in `write`.
            Exception: anything that iterating over `requests` raises.
        """
        for _ in self._chunks(requests):
            pass

    def _store(self, chunk: list[Request]) -> None:
        self._check_memory()
        data = pack_input(chunk)
        if self._limit_bytes is not None and self.bytes + len(data) > self._limit_bytes:
            raise job_too_large(self._limit_bytes)
        # Each chunk restarts the expiry of all chunks, so that a slow client can finish.
        arguments = [self._keys.job_id, len(self.starts), data, UNFINISHED_SECONDS, self._limit_bytes or ""]
        if not self._store_script(self._keys.script_keys(), arguments):
            raise too_many_bytes(self._limit_bytes)
        self.bytes += len(data)
        self.starts.append(self.items)
        self.items += len(chunk)

    def _check_memory(self) -> None:
        """Check that the queue has enough memory for another chunk.

        Raises:
            OverloadError: the queue has too little memory.
        """
        memory = self._redis.info("memory")
        if memory["used_memory"] + len(self.starts) * ENTRY_BYTES > INPUT_SHARE * (memory.get("maxmemory") or math.inf):
            raise OverloadError(FULL)

    def discard(self) -> None:
        """Remove all samples that were written."""
        self._discard(self._keys.script_keys(), [self._keys.job_id])

    def _chunks(self, requests: Iterable[Request]) -> Iterator[list[Request]]:
        sized = ((request, self._add(request)) for request in requests)
        chunks = split_batches(
            sized, self._chunk_size, itemgetter(1), CHUNK_CHARACTERS, lambda pair: self._group_of(pair[0])
        )
        for chunk in chunks:
            self.chunks += 1
            yield [request for request, _ in chunk]

    def _add(self, request: Request) -> int:
        """Add a sample to the digest and to `sources`; return its number of characters."""
        text = _canonical(request)
        self._digest.update(len(text).to_bytes(8, "little") + text)
        self.sources[request.data_source] += 1
        return len(text)


def _canonical(request: Request) -> bytes:
    return json.dumps(fields_of(request), sort_keys=True).encode()
