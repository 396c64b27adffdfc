"""The Ray cluster of a judge: an existing one, or a temporary one that leaves nothing behind.

A temporary cluster listens on this machine's address, so clients need a token. The token and all files of the cluster
are in a folder that is removed at the end.
https://docs.ray.io/en/latest/ray-security/token-auth.html
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewardstack.transport.ray_actor import connect
from rewardstack_settings.kinds import RAY_NAMESPACE

FOLDER = "/tmp"
"""Parent of the cluster's folder. It must be short: the folder has Unix sockets, whose paths have at most 107 bytes."""
OBJECTS = 128 * 2**20
"""Size of Ray's shared memory for objects, in bytes; prompts and replies are too small to be stored there."""


@contextmanager
def connected(address: str = "", processors: int | None = None, gpus: int | None = None) -> Iterator[dict[str, str]]:
    """Connect this process to a cluster, and yield the environment variables with which other processes can connect.

    Args:
        address: the address of an existing cluster; empty for a temporary cluster, which ends with the context.
        processors: number of CPUs of a temporary cluster; None for all CPUs of the machine.
        gpus: number of GPUs of a temporary cluster; None for all GPUs of the machine.

    Raises:
        UnreachableError: there is no cluster at the address.
    """
    if address:
        with _joined(address) as found:
            yield found
    else:
        with _own(processors, gpus) as made:
            yield made


@contextmanager
def _joined(address: str) -> Iterator[dict[str, str]]:
    connect(address)
    import ray

    try:
        yield {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    finally:
        ray.shutdown()


@contextmanager
def _own(processors: int | None, gpus: int | None) -> Iterator[dict[str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="ray-judge-", dir=FOLDER))
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    found = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    os.environ.update(found, RAY_USAGE_STATS_ENABLED="0")
    try:
        import ray  # reads these variables

        ray.init(
            "local",
            num_cpus=processors,
            num_gpus=gpus,
            namespace=RAY_NAMESPACE,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=OBJECTS,
            _temp_dir=str(folder),
        )
        try:
            yield {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, **found}
        finally:
            ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
