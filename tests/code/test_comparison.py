"""Printed and returned values are compared by what they say."""

from __future__ import annotations

from rewardstack_rules.code.comparison import same_output, same_value
from tests.support.table import Table

PRINTED = {
    "the same": ("1 2\n", "1 2\n", "lines", None, True),
    "without the last line end": ("1 2", "1 2\n", "lines", None, True),
    "blanks at the ends of lines": ("1  \n 2\n\n", "1\n2", "lines", None, True),
    "a number in another form": ("1.0\n", "1", "lines", None, True),
    "a leading zero": ("0011\n", "11\n", "lines", None, False),
    "no leading zero": ("11\n", "0011\n", "lines", None, False),
    "the same leading zeros": ("0011\n", "0011\n", "lines", None, True),
    "another number of leading zeros": ("0 00", "00 0", "tokens", None, False),
    "leading zeros after a sign": ("-05", "-5", "tokens", None, False),
    "leading zeros before a point": ("00.5", "0.5", "lines", None, False),
    "a zero before and after a point": ("0.50", ".5", "lines", None, True),
    "a leading zero of an exponent": ("1e05", "1e5", "lines", None, True),
    "leading zeros within a tolerance": ("0011", "11", "lines", 1e-9, True),
    "a large number": ("1e3", "1000", "lines", None, True),
    "digits beyond a float": ("0.1", "0.10000000000000000001", "lines", None, False),
    "an underscore is no number": ("1_0", "10", "lines", None, False),
    "words are no numbers": ("nan", "NaN", "lines", None, False),
    "only the first line (open-r1 pays it)": ("1\n", "1\n2\n", "lines", None, False),
    "a line too many": ("1\n2\n", "1\n", "lines", None, False),
    "lines in another order (prime_code pays it)": ("2\n1\n", "1\n2\n", "lines", None, False),
    "words on other lines": ("1 2", "1\n2", "lines", None, False),
    "words on other lines as tokens": ("1 2", "1\n2", "tokens", None, True),
    "other case": ("yes", "YES", "lines", None, False),
    "nothing": ("", "1", "lines", None, False),
    "nothing expected": ("", "", "lines", None, True),
    "exact": ("1\n", "1\n", "exact", None, True),
    "exact but for the line end": ("1", "1\n", "exact", None, False),
    "within the tolerance": ("3.1416", "3.14159", "lines", 1e-4, True),
    "outside of it": ("3.15", "3.14159", "lines", 1e-4, False),
    "relative": ("1000001", "1000000", "lines", 1e-5, True),
    "so long that it is not read": ("1" + " " * (2 << 20), "1", "tokens", None, False),
    "infinite": ("1e999999", "1", "lines", 1e-5, False),
    "numbers beyond floats": ("9" * 400, "1" * 350, "lines", 1e-6, False),
    "a number beyond floats": ("1" + "0" * 400, "1e400", "lines", 1e-6, True),
    "a long number with a letter": ("1" * 1_000_000 + "x", "1", "tokens", None, False),
    "a long number": ("1" * 1_000_000, "1", "lines", None, False),
    "points": ("1.", "1", "lines", None, True),
    "a point without digits": (".", "1", "lines", None, False),
}
VALUES = {
    "a list": ([1, 2], [1, 2], None, True),
    "another order": ([2, 1], [1, 2], None, False),
    "a float for a whole number": (1.0, 1, None, True),
    "within the tolerance": ([1.0000001], [1], 1e-6, True),
    "a bool is no number within a tolerance": (True, 1.0000001, 1e-3, False),
    "objects": ({"a": [1.0]}, {"a": [1]}, None, True),
    "other keys": ({"a": 1}, {"b": 1}, None, False),
    "nothing": (None, 0, None, False),
    "a string for a number": ("1", 1, None, False),
    "an integer beyond floats": (10**400, 10**400, 1e-3, True),
}


def test_printed(table: Table) -> None:
    """Text is compared by lines, by tokens or exactly, and numbers by their value."""
    for name, (printed, expected, way, tolerance, same) in PRINTED.items():
        with table.case(name):
            assert same_output(printed, expected, way, tolerance) is same


def test_values(table: Table) -> None:
    """Values of JSON are compared part by part."""
    for name, (value, expected, tolerance, same) in VALUES.items():
        with table.case(name):
            assert same_value(value, expected, tolerance) is same


def test_deep_values() -> None:
    """A value that is nested deeply is not the same, and ends nothing."""
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    assert same_value(value, value) is False
