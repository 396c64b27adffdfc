"""Read the test options of a sample from its `extra_info`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardstack.core.fields import Fields, value_error
from rewardstack_rules.code.comparison import MODES
from rewardstack_rules.code.formats import MAX_TESTS
from rewardstack_rules.code.languages import LANGUAGES, find_language

SCORES = ("all", "share", "weighted")
FIELDS = ("score", "time_limit", "memory_mb", "compare", "tolerance", "max_tests", "language", "extract")


class Options(NamedTuple):
    """Test options of a sample.

    Args:
        score: how the reward is computed: `all` (1 if all tests pass, else 0), `share` (the share of tests that pass)
            or `weighted` (0.9 times `all` plus 0.1 times `share`).
        time_limit: CPU seconds that a test may take; the test programs of a sample together count as one test.
        memory: peak memory that a test may use, in bytes.
        compare: how printed text is compared, one of `comparison.MODES`.
        tolerance: maximum difference of numbers (see `comparison.same_output`); None if values must be equal.
        max_tests: maximum number of test cases to run; test programs are not limited.
        language: language of the program, a key of `languages.LANGUAGES`; empty to use the language of the problem.
        extract: where the program is: `fence` or `response` (see `extraction.extract_code`).
    """

    score: str
    time_limit: float
    memory: int
    compare: str
    tolerance: float | None
    max_tests: int
    language: str
    extract: str

    @staticmethod
    def read(extra: Mapping[str, Any]) -> Options:
        """Return the options of a sample; raise RequestError if one is malformed."""
        given = Fields(extra)
        return Options(
            given.choice("score", SCORES),
            given.number("time_limit", 6.0, 0.1, 60),
            given.integer("memory_mb", 512, 16, 4096) << 20,
            given.choice("compare", MODES),
            given.number("tolerance", None, 0, 1, is_exclusive=True),
            given.integer("max_tests", MAX_TESTS, 1, MAX_TESTS),
            _language(given.get("language")),
            given.choice("extract", ("fence", "response")),
        )

    def value(self, passed: int, total: int) -> float:
        """Return the reward of a program that passes `passed` of `total` tests."""
        everything, share = float(passed == total), passed / total
        return {"all": everything, "share": share, "weighted": 0.9 * everything + 0.1 * share}[self.score]


def _language(value: Any) -> str:
    if value is None or value == "":
        return ""
    found = find_language(value) if isinstance(value, str) else None
    if found is None:
        raise value_error("language", f"one of {', '.join(LANGUAGES)}", value)
    return found
