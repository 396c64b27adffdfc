"""What people and models write in many ways, rewritten into one: the table that `notation.tidy` goes through."""

from __future__ import annotations

import re
from typing import NamedTuple


class Rewrite(NamedTuple):
    """One step.

    Args:
        sign: what every text holds to which it applies; the search for it costs less than the pattern.
        pattern: what is replaced.
        replacement: as `re.sub` takes it.
    """

    sign: str
    pattern: re.Pattern[str]
    replacement: str


_FONTS = "text(?:bf|it|rm|normal|sf|tt|up)?|math(?:rm|bf|it|sf|tt)|emph|underline|mbox|operatorname|boldsymbol|bm"

REWRITES: tuple[Rewrite, ...] = tuple(
    Rewrite(sign, re.compile(pattern), replacement)
    for sign, pattern, replacement in (
        ("", r"\s+", " "),
        # what sets in type only
        ("\\$", r"\\\$", r"\\text{dollar}"),
        ("$", r"^([^$]*)\$(?= ?[\d.])([^$]*)$", r"\1\\text{dollar}\2"),
        ("$", r"\$", ""),
        ("\\", r"\\[()]", ""),
        ("\\", r"\\(?:left|right)\s*\.", ""),
        (
            "\\",
            r"\\(?:left|right|middle|[bB]igg?[lrm]?|(?:display|text)style|limits|tiny|small|large|Large|LARGE|[hH]uge)"
            r"(?![A-Za-z])",
            "",
        ),
        ("\\", r"\\(?:bf|rm|it|sf|tt|em)(?![A-Za-z])", ""),
        ("color", r"\\(?:text)?color\s*\{[A-Za-z]+\}", ""),
        ("phantom", r"\\phantom\s*\{[^{}]*\}", ""),
        (
            "\\",
            r"\\(?:vec|overrightarrow|hat|mathbf|boldsymbol|bm)\s*(?:\{\s*([a-z])\s*\}| ([a-z])(?![A-Za-z]))",
            r"\1\2 ",
        ),
        ("\\", rf"\\(?:{_FONTS})\s*(?=\{{)", r"\\text"),
        ("\\overrightarrow", r"\\overrightarrow(?![A-Za-z])", r"\\vec"),
        ("brace", r"\\lbrace(?![A-Za-z])", r"\\{"),
        ("brace", r"\\rbrace(?![A-Za-z])", r"\\}"),
        ("angle", r"\\langle(?![A-Za-z])", "("),
        ("angle", r"\\rangle(?![A-Za-z])", ")"),
        # words
        ("\\text", r"^\s*\\text\{\s*([Yy]es|[Nn]o|[Tt]rue|[Ff]alse)[,.;:] [^{}]*\}\s*$", r"\\text{\1}"),
        ("\\text", r"^\s*\\text\{([^{}]*(?: (?:and|or) |, )[^{}]*)\}\s*$", r"\1"),
        ("\\text", r"\\text\{ *\\text\{([^{}]*)\} *\}", r"\\text{\1}"),
        ("\\text", r"\\text\{\s*([-+]?\d[\d.,]*)\s*\}", r"\1"),
        ("\\text{", r"^\s*\\text\{(?![^{}]*\bnot\b)[^{}]*\b(?:answer|result|value)(?: is|:| =) ([^{}]+)\}\s*$", r"\1"),
        ("\\text{", r"\\text\{ ?[.,;!] ?\}\s*$", ""),
        (
            "\\text",
            r"\\text\{\s*(?:about |approximately )?([-+]?\d[\d.,/]*) ([A-Za-z][^{}]*)\}",
            r"\1 \\text{\2}",
        ),
        (
            "\\text",
            r"^\s*\\text\{(?![^{}]*(?:wrong|not)|[A-J]: ?\})[^{}]*(?:\b(?:is|are|equals)|[:=])\s*\}\s*(?=\S)",
            "",
        ),
        ("ll ", r"^\s*[Aa]ll (?=\$?[A-Za-z] ?(?:\\[lg]e|[<>=≤≥]))", ""),
        ("ll real", r"^\s*(?:\\text\{)?\s*[Aa]ll real(?:s| numbers)\s*\}?\s*$", r"\\mathbb{R}"),
        ("ll integers", r"^\s*(?:\\text\{)?\s*[Aa]ll integers\s*\}?\s*$", r"\\mathbb{Z}"),
        (":", r"\{:\}", ":"),
        ("\\text", r"\\text\{\s*(and|or)\s*\}", r" \1 "),
        ("\\text", r"^\s*\\text\{ ?(?:approximately|about|around|roughly) ?\} ?(?=[\d$\\])", ""),
        ("percent", r"\s*(?:\\text\{\s*percent\s*\}|\bpercent\b)", "%"),
        ("\\%", r"\s*\\%", "%"),
        ("to", r"(?<=\d)\s*(?:\\text\{\s*to\s*\}|\bto\b)\s*(?=\d)", ":"),
        ("\\text", r"(?<=\d)\s*\\text\{\s*(thousand|million|billion|trillion)\b", r" \1 \\text{"),
        ("thousand", r"(?<=\d) ?\bthousand\b", r"\\times 10^{3}"),
        ("hundred", r"(?<=\d) ?(?:\\text\{ ?hundred ?\}|\bhundred\b)", r"\\times 10^{2}"),
        ("million", r"(?<=\d) ?\bmillion\b", r"\\times 10^{6}"),
        ("billion", r"(?<=\d) ?\bbillion\b", r"\\times 10^{9}"),
        ("trillion", r"(?<=\d) ?\btrillion\b", r"\\times 10^{12}"),
        ("\\text", r"\\text\{\s*\}", ""),
        ("s ", r"\b(?:negative|minus) (?=\d)", "-"),
        ("e ", r"\bnegative (?=\d)", "-"),
        ("square root of", r"(?:\bthe )?\bsquare root of ?(\d+)", r"\\sqrt{\1}"),
        ("squared", r"(?<=\d) ?(?:\\text\{ ?squared ?\}|\bsquared\b)$", "^{2}"),
        ("cubed", r"(?<=\d) ?(?:\\text\{ ?cubed ?\}|\bcubed\b)$", "^{3}"),
        ("remainder", r"(?<=\d) ?,? ?(?:\\text\{,? ?remainder ?\}|\bremainder\b) ?(?=\d)", " R "),
        ("R", r"(?<=\d) ?\\text\{ ?R ?\} ?(?=\d)", " R "),
        (" and a ", r"(?<=\d) and a half\b", r"\\frac{1}{2}"),
        (" and a ", r"(?<=\d) and a third\b", r"\\frac{1}{3}"),
        (" and a ", r"(?<=\d) and a quarter\b", r"\\frac{1}{4}"),
        ("mod", r"\(\s*(?:\\b?mod|\bmod|\\text\{\s*mod\s*\})\s*\{?(\w+)\}?\s*\)", r"\\pmod{\1}"),
        ("mod", r"\\(?:mod|pmod|pod)\s*\{?\s*(\w+)\s*\}?", r"\\pmod{\1}"),
        ("(", r"(?<=\d) \([a-z-]+\)(?= )", ""),
        ("(", r"(?<=[\d}]) ?(?:\\text\{ ?)?\((?!wrong|incorrect|not\b)[A-Za-z][A-Za-z ,'-]{2,}\)(?: ?\})?$", ""),
        ("(\\text", r"(?<=[\d}]) ?\(\\text\{[A-Za-z ,'-]{2,}\}\)$", ""),
        # currencies
        ("\\pounds", r"\\pounds(?![A-Za-z])", r"\\text{gbp}"),
        ("\\euro", r"\\euro(?![A-Za-z])", r"\\text{euro}"),
        ("\\text{dollar}", r"\bUSD? ?\\text\{dollar\}", r"\\text{dollar}"),
        ("USD", r"(\\text\{dollar\} ?[\d.,]+) ?USD\b", r"\1"),
        ("USD", r"^ ?USD ?(?=\d)", r"\\text{dollar}"),
        ("EUR", r"^ ?EUR ?(?=\d)", r"\\text{euro}"),
        ("R", r"^ ?(?:Rs\.?|INR|\\text\{ ?Rs\.? ?\}) ?(?=\d)", r"\\text{rupee}"),
        # degrees
        (
            "\\circ",
            r"(\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])\s*[({]?\s*)(\d+)\s*\^\s*\{?\s*\\circ(?![A-Za-z])\s*\}?",
            r"\1\\frac{\2\\pi}{180}",
        ),
        ("\\circ", r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\text\{\s*)?C\b\}?", r"\\text{celsius}"),
        ("\\circ", r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\text\{\s*)?F\b\}?", r"\\text{fahrenheit}"),
        ("\\circ", r"\^\s*\{?\s*\\circ\s*\}?", ""),
        ("\\degree", r"\\degrees?(?![A-Za-z])", ""),
        # fractions and powers
        ("frac", r"\\(?:[dtc]|nice|s)frac(?![A-Za-z])", r"\\frac"),
        ("\\frac", r"\\frac\s*(\d)\s*(?=[\d{])", r"\\frac{\1}"),
        ("\\frac", r"(\\frac\s*\{[^{}]*\})\s*(\d)", r"\1{\2}"),
        ("\\frac", r"\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}\s*\}", r"\\text{\1/\2}"),
        (
            "\\frac",
            r"\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}\s*\^\s*\{?(\d)\}?\s*\}",
            r"\\text{\1/\2^\3}",
        ),
        ("**", r"(?<=[\w)\]}]) ?\*\* ?(?=[\w({+-])", "^"),
        ("^", r"(?<=\d) ?\^ ?\{? ?(?:\\text\{ ?)?(?:st|nd|rd|th)(?![A-Za-z]) ?\}? ?\}?", ""),
        ("^", r"\^ ?\(([^()]*)\)", r"^{\1}"),
        ("^", r"\^ ?(-\d+|\d{2,})", r"^{\1}"),
        ("\\text", r"(\\text\{[^{}]*)\^ ?\{(-?\d)\}", r"\1^\2"),
        ("sqrt", r"(?<![A-Za-z\\])sqrt ?\(([^()]*)\)", r"\\sqrt{\1}"),
        ("\\sqrt[", r"(\\sqrt\[\w+\]) ?(\w)", r"\1{\2}"),
        ("^", r"(?<=\d) ?[xX] ?(?=10 ?\^)", r"\\times "),
        # sets, dots, spaces
        ("\\", r"\\varnothing(?![A-Za-z])|\\\{\s*\\\}", r"\\emptyset "),
        ("U", r"(?<=[)\]}]) ?U ?(?=[(\[\\])", r"\\cup "),
        ("mathbb", r"\\mathbb\{R\} ?(?:\^ ?\{? ?\+ ?\}?|_ ?\{? ?(?:>|\+) ?0? ?\}?)", r"(0, \\infty)"),
        ("[", r"(?<=[\d} a-z])\[ ?$", ")"),
        ("]", r"^ ?\](?=[^\[\]()]*,[^\[\]()]*[)\]]$)", "("),
        ("dots", r"\\[lc]?dots[cbo]?(?![A-Za-z])", r"\\ldots "),
        ("...", r"\.\.\.", r"\\ldots "),
        ("\\", r"(?<!\\)\\[,!;: ]|\\q?quad", " "),
        ("~", "~", " "),
        # numbers
        ("/", r"(?<![\w.}])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d/])", r"\1\\frac{\2}{\3}"),
        ("", r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,4})(?!\w)", r"\1\\times 10^{\2}"),
        ("_", r"(?<![A-Za-z\\])([A-Za-z])_ ?\{1, ?2(?:, ?3)*\}", r"\1"),
        ("", r"(?<=\d)(?:st|nd|rd|th)\b", ""),
        # functions
        ("\\log", r"\\log ?_ ?\{?e\}?(?![A-Za-z])", r"\\ln "),
        ("", r"(?<![A-Za-z\\])(pi|sin|cos|tan|cot|sec|csc|ln|log)(?![A-Za-z])", r"\\\1 "),
        ("infinity", r"(?<![A-Za-z\\])infinity(?![A-Za-z])", r"\\infty "),
        ("\\infty", r"\+\s*\\infty", r"\\infty"),
        # the rim
        ("", r"^(?:=>|=|\\(?:approx|therefore|implies|Rightarrow)(?![A-Za-z])|\\\[|[\s*`])+", ""),
        ("", r"(?:\\\]|\\(?:checkmark|blacksquare|square|qed|Box)(?![A-Za-z])|[\s.,;:*`。✓✔✅])+$", ""),
        ("", r"\s+", " "),
    )
)
