"""Fills the parser's caches: a parser that has seen each notation once is several times faster."""

from __future__ import annotations

from rewardstack_rules.mathematics.verification import verify

_PAIRS = (
    (r"\frac{1}{2}", r"\frac{2\sqrt{3}}{4\sqrt{3}}"),
    (r"2\sqrt{3}", r"\sqrt{12}"),
    (r"x^2+2x+1", r"(x+1)^{2}"),
    (r"\frac{x+1}{2}", r"\frac{x}{2} + \frac{1}{2}"),
    (r"y = 2x + 1", r"2x - y + 1 = 0"),
    (r"x \ge 1", r"[1, \infty)"),
    (r"-2 < x \le 7", r"(-2, 7]"),
    (r"(-\infty, 1) \cup (2, \infty)", r"(2, \infty) \cup (-\infty, 1)"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix} 1 & 2 \\ 3 & 5 \end{bmatrix}"),
    (r"3 \pm 2\sqrt{2}", r"3 + 2\sqrt{2}, 3 - 2\sqrt{2}"),
    (r"\frac{\pi}{2}", r"\pi/3"),
    (r"\sin(x) + \cos^2 x", r"\cos^{2} x + \sin x"),
    (r"\log_2 8 + \ln e", r"2^{2}"),
    (r"\binom{5}{2}", r"5!"),
    (r"5 \text{ cm}", r"50 \text{ mm}"),
    (r"12", r"\text{twelve}"),
    (r"e^{i\pi}", r"|x| - 1"),
    (r"f(x) = a_1 x \cdot y", r"-\frac{a}{b}"),
)


def warm_up() -> None:
    """Verifies one pair of each common notation; call it in the process that children are forked from."""
    for reference, answer in _PAIRS:
        verify(f"\\boxed{{{answer}}}", [reference])
