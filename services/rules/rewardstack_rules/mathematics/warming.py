"""Loads what verdicts need, before children are forked that would each load it anew: `warm_up`."""

from __future__ import annotations

from rewardstack_rules.mathematics.verification import verify


def warm_up() -> None:
    """Decides one answer by its value, and fills math_verify's caches; call it in the process that is forked."""
    from rewardstack_rules.mathematics import symbolic

    verify(r"\boxed{\sqrt{8}x}", [r"2\sqrt{2}x"])
    symbolic.warm_up()
