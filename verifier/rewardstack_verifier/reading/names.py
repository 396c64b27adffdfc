"""Tables of names with a fixed meaning: functions, constants, relations, conjunctions, units."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


FUNCTION_ALIASES = dict(
    pair.split(":")
    for pair in word_set(
        "tg:tan ctg:cot cotg:cot cosec:csc arctg:arctan arcctg:arccot sh:sinh ch:cosh th:tanh cth:coth lg:log10"
        " asin:arcsin acos:arccos atan:arctan arsinh:arcsinh arcosh:arccosh artanh:arctanh sgn:sign ceil:ceiling"
    )
)
"""Other names of functions, as words and as commands."""
FUNCTIONS = {
    **{
        name: name
        for name in word_set(
            "sin cos tan cot sec csc cis arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech csch"
            " arcsinh arccosh arctanh ln exp erf zeta sign abs floor cbrt log10"
        )
    },
    **FUNCTION_ALIASES,
    "Re": "real part",
    "Im": "imaginary part",
    "arg": "argument",
    "Arg": "argument",
    "log": "log10",
}
"""Operation of each function name; `log` without a base is the decimal logarithm."""

AMBIGUOUS_FUNCTIONS = word_set("tg sh ch th lg")
"""Functions that may be a product of two letters unless they are upright or a space follows."""

INVERSES = {name: f"arc{name}" for name in word_set("sin cos tan cot sec csc sinh cosh tanh")}
"""Inverse of each function for which the exponent -1 means the inverse: `\\sin^{-1}` is `arcsin`."""

MULTI_ARGUMENT_FUNCTIONS = {
    "max": "maximum",
    "min": "minimum",
    "gcd": "gcd",
    "GCD": "gcd",
    "HCF": "gcd",
    "lcm": "lcm",
    "LCM": "lcm",
}
"""Functions of several arguments in parentheses."""

OVER_INDEX = {"sum": "sum over", "prod": "product over"}
"""Operations over an index, by LaTeX command."""

GREEK = word_set(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron rho sigma tau upsilon phi chi psi"
    " omega circled Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar"
)

CONSTANTS = {"pi": "pi", "e": "e", "i": "i", "infty": "infinity", "infinity": "infinity", "inf": "infinity"}

RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "le": "<=",
    "ge": ">=",
    "ne": "!=",
    "approx": "~",
    "in": "in",
    "notin": "notin",
    "equiv": "equiv",
    "to": "->",
    "Rightarrow": "->",
    "implies": "->",
    "subset": "in",
    "subseteq": "in",
}

JOINING = {
    **dict.fromkeys(("and", "und", "et", "e", "y", "和", "与", "且", "と", "и"), "and"),
    **dict.fromkeys(("or", "oder", "ou", "o", "或", "或者", "または", "или"), "or"),
    "land": "and",
    "lor": "or",
    "to": ":",
}
"""Words and commands between the members of a list, and what they mean."""

MATRICES = frozenset(("matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array"))

DETERMINANT = "vmatrix"
"""Environment of a matrix between bars, which means its determinant."""

SYSTEMS = frozenset(("cases", "aligned", "align", "gathered", "gather", "split"))
"""Environments whose rows are equations or conditions."""

DECORATIONS = word_set("vec hat bar tilde dot ddot")
"""Accents, which make a letter a different name: `\\bar{x}`."""

NO_FACTORS = word_set(
    "all and any are but das der die ein für has les mod nor not one per plus the und was yes odd red two six ten"
    " in is of or if no so to min max deg mol sin day ton cup way men"
)
"""Short words that are never a product of letters."""

UNIT_LETTERS = frozenset("mgshlLNJKVWACFT")
"""Letters that are a unit if they are upright and follow a number."""
