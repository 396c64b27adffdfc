"""The program of a response is its last closed fence with the language's tag."""

from __future__ import annotations

from rewardstack_rules.code.extraction import extract_code
from tests.support.table import Table

CASES = {
    "a tagged fence": ("Here:\n```python\nx=1\n```\nDone.", "x=1\n"),
    "the last of several": ("```python\nx=1\n```\n```py\nx=2\n```", "x=2\n"),
    "tagged before untagged": ("```python\nx=1\n```\n```\noutput\n```", "x=1\n"),
    "untagged alone": ("```\nx=1\n```", "x=1\n"),
    "another language": ("```cpp\nint x;\n```", ""),
    "not closed": ("```python\nx=1\n", ""),
    "a closed one, then one that is not": ("```python\nx=1\n```\n```python\nx=2", "x=1\n"),
    "no fence": ("x=1", ""),
    "in the reasoning": ("<think>\n```python\nx=1\n```\n</think>\nNo.", ""),
    "after the reasoning": ("<think>\n```python\nx=1\n```\n</think>\n```python\nx=2\n```", "x=2\n"),
    "tildes": ("~~~python\nx=1\n~~~", "x=1\n"),
    "a longer fence around a shorter one": ("````python\ns='''\n```\n'''\n````", "s='''\n```\n'''\n"),
    "tag in capitals": ("```Python3\nx=1\n```", "x=1\n"),
    "words after the tag": ("```python title=a.py\nx=1\n```", "x=1\n"),
    "indented in a list": ("1. So:\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y\n"),
    "an empty tagged one": ("```\nx=1\n```\n```python\n\n```", "x=1\n"),
    "a tag without end": ("```" + "a" * 1_000_000 + "`\n```python\nx=1\n```", "x=1\n"),
    "blanks without end": ("```" + " " * 1_000_000 + "`\n```python\nx=1\n```", "x=1\n"),
    "carriage returns": ("```python\r\nx=1\r\n```", "x=1\n"),
}


def test_fences(table: Table) -> None:
    """Each response has the program that a reader sees."""
    for name, (response, program) in CASES.items():
        with table.case(name):
            assert extract_code(response, "python", "fence") == program


def test_whole_response() -> None:
    """`extract: response` takes all behind the reasoning."""
    assert extract_code("<think>hm</think>x=1", "python", "response") == "x=1"
