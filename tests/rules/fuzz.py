"""Fuzzes every endpoint of a reward server: `python -m tests.rules.fuzz --requests 10000`.

Half of the requests are made from its own OpenAPI document, which half of those keep to and half break; none may be
answered by 500, nor otherwise than the document says. The others are hostile in ways that no document has (`stress`):
deep, long, cut off, slow, compressed. Starts a server, a queue and a worker of its own; prints how many requests each
endpoint and each kind had, and how they were answered.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from tests.jobs.conftest import site
from tests.support.hostile.stress import StressTest

MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
CHECKS: list[CheckFunction] = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]

Counts = Counter[tuple[str, int]]


class Fuzzer:
    """Sends requests, and fails at the first answer that should not be.

    Args:
        url: of the server.
        seed: the same one makes the same requests.
        under: how the paths of the endpoints begin that are asked.
    """

    def __init__(self, url: str, seed: int, under: str = "/") -> None:
        self.counts: Counts = Counter()
        self._url, self._seed = url, seed
        self._session = requests.Session()
        document = self._session.get(f"{url}/openapi.json", timeout=60).json()
        found = schemathesis.openapi.from_dict(document).get_all_operations()
        self._operations = [result.ok() for result in found if isinstance(result, Ok)]
        assert len(self._operations) == sum(map(len, document["paths"].values()))
        self._operations = [one for one in self._operations if one.path.startswith(under)]

    def run(self, count: int) -> None:
        """Sends at least `count` requests; every endpoint has its share, and so have right and wrong ones.

        Raises:
            AssertionError: an answer was 500.
            FailureGroup: an answer is not in the document.
        """
        share = -(-count // (len(self._operations) * len(MODES)))
        with self._session:
            for operation in self._operations:
                for mode in MODES:
                    self._fuzz(operation, mode, share)

    def _fuzz(self, operation: APIOperation, mode: Any, count: int) -> None:
        @seeded(self._seed)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: schemathesis.Case) -> None:
            response = case.call(base_url=self._url, session=self._session, timeout=60)
            self.counts[operation.label, response.status_code] += 1
            assert response.status_code != 500, f"{case.as_curl_command()}: {response.text}"
            case.validate_response(response, checks=CHECKS)

        run()


def main() -> None:
    """Reads the arguments, fuzzes a server of two processes with a queue and a worker, and prints the counts."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzzes a reward server.")
    parser.add_argument("--requests", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other requests")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    half = -(-options.requests // 2)
    hung = 1  # expires where a hostile request never ends
    with tempfile.TemporaryDirectory() as folder, site(Path(folder), processes=2, VERIFY_TIMEOUT=hung) as here:
        here.add_worker()
        fuzzer = Fuzzer(here.server.url, options.seed)
        fuzzer.run(half)
        stress = StressTest(here.server.url, options.seed, here.server.processes)
        stress.run(half)
    counts = fuzzer.counts + stress.counts
    for (operation, status), count in sorted(counts.items()):
        print(f"{operation:28} {status or 'closed':>6} {count:6}")
    print(f"{counts.total()} requests, no 500")


if __name__ == "__main__":
    main()
