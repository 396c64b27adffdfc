"""Both signs at once: `\\pm` and `\\mp`."""

from __future__ import annotations

from rewardstack_rules.mathematics import names
from rewardstack_rules.mathematics.notation import tidy
from rewardstack_rules.mathematics.structure import group

_UPPER = (("\\pm", "+"), ("\\mp", "-"))
_LOWER = (("\\pm", "-"), ("\\mp", "+"))


def has_both(text: str) -> bool:
    """Whether a tidied text stands for two."""
    return "\\pm" in text or "\\mp" in text


def written_out(text: str) -> list[str]:
    """What a tidied list stands for with every `\\pm` written out."""
    several = group(text)
    items = list(names.solutions(several).items) if several else [text]
    if several is not None and several.brackets not in ("", "{}"):
        items = [text]
    both = []
    for item in items:
        for replacements in (_UPPER, _LOWER) if has_both(item) else ((),):
            one = item
            for sign, replacement in replacements:
                one = one.replace(sign, replacement)
            both.append(tidy(one))
    return both
