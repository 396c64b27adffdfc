"""Connect to the Ray cluster of a judge: an existing cluster, or a temporary one.

A temporary cluster listens on the network, so clients need a token. The token and all files of the cluster are in a
folder that is removed when the cluster stops.
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

from rewardstack.transport import ray_actor
from rewardstack_settings.kinds import RAY_NAMESPACE

FOLDER = "/tmp"
"""Parent of the cluster's folder; a short path, because the path of a Unix socket can have at most 107 bytes."""
OBJECT_STORE_BYTES = 128 * 2**20
"""Size of Ray's shared memory for objects, in bytes. It can be small, because Ray stores only large objects there,
and prompts and replies are smaller."""


@contextmanager
def connect(address: str = "", processors: int | None = None, gpus: int | None = None) -> Iterator[dict[str, str]]:
    """Connect this process to a cluster, and yield the environment variables that other processes need to connect.

    Args:
        address: the address of an existing cluster; empty for a temporary cluster, which ends with the context.
        processors: number of CPUs of a temporary cluster; None for all CPUs of the machine.
        gpus: number of GPUs of a temporary cluster; None for all GPUs of the machine.

    Raises:
        UnreachableError: there is no cluster at the address.
    """
    if address:
        with _join_cluster(address) as variables:
            yield variables
    else:
        with _start_cluster(processors, gpus) as variables:
            yield variables


@contextmanager
def _join_cluster(address: str) -> Iterator[dict[str, str]]:
    ray_actor.connect(address)
    import ray

    try:
        yield {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    finally:
        ray.shutdown()


@contextmanager
def _start_cluster(processors: int | None, gpus: int | None) -> Iterator[dict[str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="ray-judge-", dir=FOLDER))
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    os.environ.update(variables, RAY_USAGE_STATS_ENABLED="0")
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
            object_store_memory=OBJECT_STORE_BYTES,
            _temp_dir=str(folder),
        )
        try:
            yield {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, **variables}
        finally:
            ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
