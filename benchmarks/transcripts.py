"""Time to split hostile responses into turns, compared to one search for the characters with which markers begin.

    python benchmarks/transcripts.py

Splits 32,000 characters of each text, and reads the last turn and then all turns. The baseline is
`re.findall(r'```|[<\\[|]', text)`. Rounds of both alternate; the fastest of each counts.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from rewardstack_verifier.transcript import split_turns

CHARACTERS = 32_000
BASELINE = re.compile(r"```|[<\[|]")
TEXTS = {
    "prose": "Prose is text, of course. ",
    "fences": "```\n",
    "fences with a tag": "```python\n",
    "angle brackets": "<",
    "end tokens": "</s>",
    "end tokens, quoted": '"</s>"',
    "unknown tokens": "<|x_y|>",
    "headers": "<|im_start|>user\n",
    "turns": "a<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n",
    "turns of Mistral": "[INST]a[/INST]b</s>",
    "turns in fences": "```\na<|im_end|>\n<|im_start|>user\n```\n",
    "headers of gpt-oss": "<|end|><|start|>assistant",
    "tags": "<information>",
    "calls": "</search>\n",
    "calls without output": "</search><information>",
    "calls with output": "</search><information>a</information>",
    "fenced calls": "```python\nx\n```\n```output\ny\n```\n",
    "ends of reasoning": "</think>",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    print(f"{'milliseconds':22} last turn all turns findall  ratios")
    worst = 0.0
    for name, part in TEXTS.items():
        text = part * (CHARACTERS // len(part))
        last, every, found = _fastest([_last, _all, BASELINE.findall], text, rounds)
        worst = max(worst, last / found)
        shown = " ".join(f"{seconds * 1e3:8.2f}" for seconds in (last, every, found))
        print(f"{name:22} {shown} {last / found:6.1f} {every / found:6.1f}")
    note = f"{CHARACTERS:,} characters of the worst of {len(TEXTS)} texts"
    figure("splitting into turns", worst, "times", against="re.findall", ratio=worst, note=note)


def _last(text: str) -> str:
    return split_turns(text).last


def _all(text: str) -> object:
    return split_turns(text).turns


def _fastest(calls: list[Callable[[str], Any]], text: str, rounds: int) -> list[float]:
    """Return the CPU seconds of the fastest of alternating calls with the text."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for index, call in enumerate(calls):
            start = time.process_time()
            call(text)
            best[index] = min(best[index], time.process_time() - start)
    return best


if __name__ == "__main__":
    main()
