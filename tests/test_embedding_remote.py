"""The embedding reward against a real server, and without one.

    cd tests/
    python test_embedding_remote.py

By hand or under pytest: it takes the server in EMBEDDING_SERVER_URL, else starts one where an interpreter with
sentence-transformers is to be had.
"""

from __future__ import annotations

import os
import sys
import unittest
from contextlib import ExitStack
from difflib import SequenceMatcher
from pathlib import Path
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rewardstack.embedding_remote import compute_score, compute_score_batched
from tests.support.embedding_url import embedding_url

SOURCE = "embedding_remote_test"
TEXT = "The cat sits on the mat."
SAME = "A cat is sitting on a mat."
OTHER = "Interest rates rose by a quarter point."
NOWHERE = {"server_url": "http://127.0.0.1:9", "timeout": 0.5}  # expires

resources = ExitStack()


def setUpModule() -> None:
    """Points the environment to a server."""
    url = resources.enter_context(embedding_url())
    resources.enter_context(mock.patch.dict(os.environ, {"EMBEDDING_SERVER_URL": url}))


def tearDownModule() -> None:
    """Ends what was started."""
    resources.close()


class TestSimilarity(unittest.TestCase):
    """With a server."""

    def test_a_text_is_like_itself(self) -> None:
        """Equal texts score 1."""
        self.assertAlmostEqual(1.0, compute_score(SOURCE, TEXT, TEXT), places=2)

    def test_meaning_counts(self) -> None:
        """A paraphrase scores higher than an unrelated text, and both scores are in [0, 1]."""
        same, other = compute_score(SOURCE, TEXT, SAME), compute_score(SOURCE, TEXT, OTHER)
        self.assertTrue(0.0 <= other < same <= 1.0, (same, other))

    def test_best_of_several_references(self) -> None:
        """Of several references the best counts."""
        self.assertEqual(compute_score(SOURCE, TEXT, SAME), compute_score(SOURCE, TEXT, [OTHER, SAME]))

    def test_batch(self) -> None:
        """A batch gives what its samples do one by one, in their order."""
        single = [compute_score(SOURCE, TEXT, reference) for reference in (SAME, OTHER)]
        self.assertEqual(single, compute_score_batched([SOURCE] * 2, [TEXT] * 2, [SAME, OTHER]))

    def test_target_filter(self) -> None:
        """`target_gt` chooses the reference."""
        chosen = compute_score(SOURCE, TEXT, [SAME, OTHER], {"target_gt": OTHER})
        self.assertEqual(compute_score(SOURCE, TEXT, OTHER), chosen)

    def test_prompt_token_filter(self) -> None:
        """`filter_gt_by_prompt_token` chooses references that hold the prompt's last word."""
        extra = {"filter_gt_by_prompt_token": True, "prompt": "Say something about interest"}
        self.assertEqual(compute_score(SOURCE, TEXT, OTHER), compute_score(SOURCE, TEXT, [SAME, OTHER], extra))

    def test_length_penalties(self) -> None:
        """Each penalty lowers the score of a response that is far too long, `none` does not."""
        scores = {
            name: compute_score(SOURCE, f"{TEXT} " * 20, TEXT, {"length_penalty": name, "length_threshold": 1.5})
            for name in ("none", "ratio", "sqrt", "log", "quadratic", "exponential")
        }
        bare = scores.pop("none")
        self.assertTrue(all(0.0 < one < bare for one in scores.values()), scores)
        self.assertAlmostEqual(bare / 20, scores["ratio"])

    def test_caching(self) -> None:
        """What was scored once is read from the cache, unless the cache is off."""
        extra = {"cache_enabled": True, "cache_size": 10000}
        compute_score(SOURCE, TEXT, SAME, extra)
        self.assertEqual(1.0, compute_score(SOURCE, TEXT, SAME, extra, details=True)["cached"])
        self.assertEqual(0.0, compute_score(SOURCE, TEXT, SAME, {"cache_enabled": False}, details=True)["cached"])


class TestWithoutAServer(unittest.TestCase):
    """With a server that is not there."""

    def test_lexical_fallback(self) -> None:
        """The similarity of the characters stands in, with a warning, and says so."""
        with self.assertLogs("rewardstack", "WARNING") as logged:
            found = compute_score(SOURCE, TEXT, SAME, NOWHERE, details=True)
        self.assertEqual(SequenceMatcher(None, TEXT.lower(), SAME.lower()).ratio(), found["score"])
        self.assertEqual(1.0, found["fallback"])
        self.assertIn("falling back to lexical similarity", "\n".join(logged.output))

    def test_penalty_on_the_fallback(self) -> None:
        """The length penalty applies to it, too."""
        with self.assertLogs("rewardstack", "WARNING"):
            bare, less = (
                compute_score(SOURCE, f"{TEXT} {TEXT}", TEXT, {**NOWHERE, "length_penalty": name})
                for name in ("none", "ratio")
            )
        self.assertAlmostEqual(bare / 2, less)


class TestEmptyTexts(unittest.TestCase):
    """Where one side says nothing."""

    def test_empty_response(self) -> None:
        """An empty response scores 0."""
        self.assertEqual(0.0, compute_score(SOURCE, "", TEXT))

    def test_missing_reference(self) -> None:
        """Without a reference there is nothing to score, and the details say so."""
        self.assertEqual(1.0, compute_score(SOURCE, TEXT, "", details=True)["unscored"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
