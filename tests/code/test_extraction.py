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
    "a file after the tag": ("```python:main.py\nx=1\n```", "x=1\n"),
    "a file after a short tag": ("```py:a\nx=1\n```", "x=1\n"),
    "an option after the tag": ("```python,run\nx=1\n```", "x=1\n"),
    "options after a comma and a blank": ("```Python3, editable, run\nx=1\n```", "x=1\n"),
    "an equals sign after the tag": ("```python=12\nx=1\n```", "x=1\n"),
    "lines after the tag": ("```python{1,3}\nx=1\n```", "x=1\n"),
    "a file in brackets after the tag": ("```python[main.py]\nx=1\n```", "x=1\n"),
    "a language after the tag of another": ("```text:python\nx=1\n```", ""),
    "a file without a tag": ("```:main.py\nx=1\n```", "x=1\n"),
    "a tag that begins with the name of a language": ("```python-repl\nx=1\n```", ""),
    "an opening fence with a file after text": ("Here: ```python:main.py\nx=1\n```", "x=1\n"),
    "a fence with a file in the program": ("```python\ns='''\n```:b\n'''\n```", "s='''\n```:b\n'''\n"),
    "separators without end": ("```" + ":," * 500_000 + "\nx=1\n```", "x=1\n"),
    "words after the tag": ("```python title=a.py\nx=1\n```", "x=1\n"),
    "indented in a list": ("1. So:\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y\n"),
    "an empty tagged one": ("```\nx=1\n```\n```python\n\n```", "x=1\n"),
    "a tag without end": ("```" + "a" * 1_000_000 + "`\n```python\nx=1\n```", "x=1\n"),
    "blanks without end": ("```" + " " * 1_000_000 + "`\n```python\nx=1\n```", "x=1\n"),
    "answer tags": ("<think>x</think><answer>```python\nx=1\n```</answer>", "x=1\n"),
    "answer tags around a fence without a tag": ("<answer>```\nx=1\n```</answer> Done.", "x=1\n"),
    "answer tags after a draft": ("```python\nx=1\n```\n<answer>```python\nx=2\n```</answer>", "x=2\n"),
    "answer tags in the program": ("```python\nx='<answer>'\ny='</answer>'\n```", "x='<answer>'\ny='</answer>'\n"),
    "an opening fence after text": ("Here: ```python\nx=1\n```\nIt prints:\n```\n1\n```", "x=1\n"),
    "an opening fence after a bullet": ("* ```python\n  if x:\n      y\n  ```", "if x:\n    y\n"),
    "an opening fence after text, not of a language": ("Here: ```text\nx=1\n```", ""),
    "prose that ends in a fence": ("Write ```python\nand then:\n```python\nx=1\n```", "x=1\n"),
    "in a quotation": ("> ```python\n> if x:\n>     y\n> ```", "if x:\n    y\n"),
    "a closing fence after the last line": ("```python\nx=1\ny=2```", "x=1\ny=2\n"),
    "the same with an answer tag": ("<answer>```python\nx=1```</answer>", "x=1\n"),
    "a line that ends in a fence, in a closed block": ("```python\ns='''\na```\n'''\n```", "s='''\na```\n'''\n"),
    "attached fences without end": ("`" * 1_000_000 + "x`y\nHere: ```python\nx=1\n```", "x=1\n"),
    "a quoted end of the reasoning": ("<think>a</think>\n```python\nx='</think>'\n```", "x='</think>'\n"),
    "a byte order mark": ("```python\n\ufeffx=1\n```", "x=1\n"),
    "carriage returns": ("```python\r\nx=1\r\n```", "x=1\n"),
}


def test_fences(table: Table) -> None:
    """Each response has the program that a reader sees."""
    for name, (response, program) in CASES.items():
        with table.case(name):
            assert extract_code(response, "python", "fence") == program


def test_whole_response(table: Table) -> None:
    """`extract: response` takes all behind the reasoning, which is marked at the beginning, or ends on its own line."""
    for response, program in {
        "<think>hm</think>\ufeffx=1": "x=1",
        "hm\n</think>\n\nx=1\n": "\n\nx=1\n",
        "# </think>\nx=1\n": "# </think>\nx=1\n",
        "x='a</think>b'": "x='a</think>b'",
    }.items():
        with table.case(response):
            assert extract_code(response, "python", "response") == program
