"""Parse quantities: a value with a unit or noun after it, or a currency sign before it."""

from __future__ import annotations

from contextlib import suppress

from rewardstack_verifier.lexicon import phrases
from rewardstack_verifier.lexicon.currencies import CURRENCIES
from rewardstack_verifier.lexicon.units import LETTERS as UNIT_LETTERS
from rewardstack_verifier.lexicon.units import MARKED, PER
from rewardstack_verifier.numbers.tree import Apply, Expression, Number, Symbol, negative, parts
from rewardstack_verifier.reading import numerals
from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token, UnreadableError
from rewardstack_verifier.reading.names import CONSTANTS, GREEK, JOINING
from rewardstack_verifier.reading.parser import MAX_FACTORS, parse_formula
from rewardstack_verifier.reading.syntax import Quantity, Sequence, Total
from rewardstack_verifier.reading.terms import is_proper, make_number, require_expression
from rewardstack_verifier.reading.units import Meanings, currencies_by_sign, is_currency, multiply_units, parse_unit

MAX_WORDS = 8
"""Maximum number of words of a noun after a value; more words are a sentence."""
MAX_TOKENS = 60
"""Maximum tokens of a quantity."""
MAX_QUANTITIES = 4
"""Maximum number of quantities that `parse_total` accepts."""
_CHANGING = frozenset(phrases.CHANGING.split())
_WITHIN = frozenset(phrases.WITHIN.split())
_SHORT = frozenset(phrases.SHORT.split())
_COMPARING = frozenset(phrases.COMPARING.split())
_PERCENT = frozenset(phrases.PERCENT.split("|"))
_PER = frozenset(PER.split())
_LETTERS, _MARKED = frozenset(UNIT_LETTERS.split()), frozenset(MARKED.split())
_SCALES = {"c": "°C", "celsius": "°C", "f": "°F", "fahrenheit": "°F", "k": "K", "kelvin": "K"}
"""Units of temperature, by the letter or word after a degree sign."""
SIGNS = frozenset(sign for row in CURRENCIES for sign in row.signs.split() if len(sign) == 1) | {"¢"}
"""Currency signs of one character."""
UNIT_SIGNS = SIGNS | {"Omega"}
"""Tokens that may be a unit although they are not letters."""
_NOUN_MARKS = frozenset("'-.,")


def parse_quantity(tokens: list[Token]) -> Quantity | Apply:
    """Parse a value with its unit or noun, or a percentage in words.

    Raises:
        UnreadableError: the tokens are not a value with a unit, a currency or a noun.
    """
    tokens = _merge_units(tokens)
    if len(tokens) > MAX_TOKENS:
        raise UnreadableError("too long for a quantity")
    if len(tokens) > 2 and tokens[-1].text == ".":
        tokens = tokens[:-1]
    with suppress(UnreadableError):
        return _money(tokens)
    for at in range(1, len(tokens)):
        if _may_begin_unit(tokens, at):
            with suppress(UnreadableError):
                return _split(tokens, at)
    raise UnreadableError("no unit")


def parse_total(tokens: list[Token]) -> Total | Sequence:
    """Parse several quantities, side by side or joined by commas and "and": `2 hours 30 minutes`.

    Returns:
        Their total; a list if one of them has a noun instead of a unit.

    Raises:
        UnreadableError: there are fewer than two or too many quantities, or a quantity cannot be parsed.
    """
    groups: list[list[Token]] = [[]]
    for token in tokens[:MAX_TOKENS]:
        joins = token.text == "," or JOINING.get(token.text) == "and"
        if joins or (token.kind == NUMBER and groups[-1] and groups[-1][-1].kind == LETTERS):
            groups.append([])
        if not joins:
            groups[-1].append(token)
    groups = [group for group in groups if group]
    if not 2 <= len(groups) <= MAX_QUANTITIES or len(tokens) > MAX_TOKENS:
        raise UnreadableError("not a sum of quantities")
    found = [one for one in map(parse_quantity, groups) if isinstance(one, Quantity)]
    if len(found) < len(groups):
        raise UnreadableError("not a sum of quantities")
    if not all(one.meanings for one in found):
        return Sequence("", tuple(found), "", ("and",) * (len(found) - 1))
    return Total(tuple(found))


def parse_mixed_number(tokens: list[Token]) -> Expression:
    """Parse a mixed number with "and": `2 and 1/3`.

    Raises:
        UnreadableError: the tokens are not a mixed number.
    """
    if tokens and tokens[0].text == "-" and len(tokens) > 1 and tokens[1].text != "-":
        return negative(parse_mixed_number(tokens[1:]))
    if len(tokens) < 3 or not tokens[0].text.isdecimal() or JOINING.get(tokens[1].text) != "and":
        raise UnreadableError("not a mixed number")
    part = parse_formula(tokens[2:])
    if not is_proper(part):
        raise UnreadableError("not a fraction")
    return Apply("sum", (make_number(tokens[0].text), require_expression(part)))


def parse_worded_value(tokens: list[Token]) -> Expression:
    """Parse an expression in symbols, a mixed number, or a number in words such as "2.5 million".

    Raises:
        UnreadableError: the tokens are not one of these.
    """
    if not any(token.kind == LETTERS and _is_in_words(token) for token in tokens):
        with suppress(UnreadableError):
            return require_expression(parse_formula(tokens))
    with suppress(UnreadableError):
        return parse_mixed_number(tokens)
    words = [token.text.lower() for token in tokens if token.text not in ("-", "{", "}")]
    value = numerals.parse_number_words(words)
    if value is None or any(token.kind == COMMAND or token.text in ("(", ",", "/") for token in tokens):
        raise UnreadableError("not a value")
    minus = tokens[0].text == "-" and len(tokens) > 1
    return negative(Number(value)) if minus else Number(value)


def _is_in_words(token: Token) -> bool:
    """Return whether letters in a value are words and not factors."""
    return not token.text.isascii() or (len(token.text) > 1 and (token.text in _CHANGING or token.word))


def _money(tokens: list[Token]) -> Quantity:
    """Parse an amount of money after its currency sign, with the unit or noun that it pays for."""
    minus = tokens[0].text == "-" if tokens else False
    rest = tokens[1:] if minus else tokens
    for length in (3, 2, 1):
        sign = "".join(token.text for token in rest[:length])
        meanings = currencies_by_sign(sign) if len(rest) > length else ()
        if meanings:
            amount = rest[length + (rest[length].text == ".") :]
            amount = amount[:-2] if _texts(amount[-2:]) == ("/", "-") else amount  # Indian notation
            amount = [Token(MARK, "-"), *amount] if minus else amount
            return _amount(amount, sign, meanings)
    raise UnreadableError("no currency")


def _texts(tokens: list[Token]) -> tuple[str, ...]:
    return tuple(token.text for token in tokens)


def _amount(tokens: list[Token], sign: str, meanings: Meanings) -> Quantity:
    with suppress(UnreadableError):
        value = _value(tokens)
        if isinstance(value, Apply) and value.operation == "percent":
            raise UnreadableError("a percentage of a currency")
        return Quantity(value, meanings)
    for at in range(1, len(tokens)):
        if tokens[at].kind == LETTERS or tokens[at].text == "/":
            with suppress(UnreadableError):
                return Quantity(_value(tokens[:at]), *_price(meanings, tokens[at:]))
    raise UnreadableError("not an amount of money")


def _price(meanings: Meanings, tokens: list[Token]) -> tuple[Meanings, str]:
    """Return the unit and noun of an amount of money; the currency may be divided by a unit (`$5 per kg`)."""
    per = tokens[0].text == "/" or tokens[0].text in _PER
    units, token_count = parse_unit(tokens[1:] if per else tokens)
    if per and units:
        return tuple(multiply_units(one, other, -1) for one in meanings for other in units), _noun(
            tokens[token_count + 1 :]
        )
    return meanings, "" if is_currency(units) else _noun(tokens[1:] if per else tokens)


def _split(tokens: list[Token], at: int) -> Quantity | Apply:
    """Parse the tokens before a position as a value, and those after it as its unit or noun."""
    following = tokens[at:]
    text = " ".join(token.text.lower() for token in following)
    if _continues_number(tokens[:at], following):
        raise UnreadableError("a part of a number in words")
    if text in _PERCENT:
        return Apply("percent", (_value(tokens[:at]),))
    meanings, token_count = parse_unit(following)
    rest = following[token_count:]
    if meanings and _is_unit(tokens, at, token_count) and not (rest and rest[0].text in _PER):
        with suppress(UnreadableError):
            noun = _noun(rest)
            return _make_quantity(tokens[:at], meanings, noun, 0 if noun else _factors(following[:token_count]))
    if is_currency(meanings) and rest and (rest[0].text in _PER or rest[0].text == "/"):
        return _make_quantity(tokens[:at], meanings, _noun(rest[1:]), 0)
    if any(token.kind == LETTERS and token.text in _SHORT and len(token.text) > 1 for token in tokens[:at]):
        raise UnreadableError("a word in a value")
    return Quantity(_value(tokens[:at]), (), _noun(following))


def _factors(unit: list[Token]) -> int:
    """Return the number of letters of a unit; 0 if they are no factors: upright, a word, or in `MARKED`."""
    text = "".join(token.text for token in unit)
    is_marked = text in _MARKED or any(
        token.word
        or token.text in _MARKED
        or token.text in SIGNS
        or len(token.text) > MAX_FACTORS + 1
        or not token.text.isascii()
        for token in unit
    )
    return 0 if is_marked else sum(token.kind == LETTERS for token in unit)


def _continues_number(value: list[Token], following: list[Token]) -> bool:
    """Return whether the first word after a value in words belongs to the number: "one" in "twenty-one students"."""
    words = [token.text.lower() for token in value if token.kind == LETTERS]
    following_word = next((token.text.lower() for token in following if token.kind == LETTERS), "")
    if not words or any(token.kind == NUMBER for token in value):
        return False
    return numerals.parse_number_words([*words, following_word]) is not None


def _make_quantity(tokens: list[Token], meanings: Meanings, noun: str, factors: int) -> Quantity:
    """Return a value with a known unit."""
    value = _value(tokens)
    if factors and any(isinstance(part, Symbol) for part in parts(value)):
        raise UnreadableError("letters after letters")
    return Quantity(value, meanings, noun, factors)


def _is_unit(tokens: list[Token], at: int, token_count: int) -> bool:
    """Return whether letters are a unit: upright, long, or after a space; `6m` and `3ab` may be products."""
    first = tokens[at]
    if first.kind != LETTERS or first.word or len(first.text) > MAX_FACTORS or not first.text.isascii():
        return True
    if any(token.text == "/" for token in tokens[at : at + token_count]):
        return True
    if len(first.text) == 1:
        return first.text in _LETTERS and first.spaced
    return first.text in _MARKED or first.spaced


def _noun(tokens: list[Token]) -> str:
    """Return the words after a value in lower case; empty without tokens.

    Raises:
        UnreadableError: the tokens are not words, or change the value.
    """
    if not tokens:
        return ""
    words = [token for token in tokens if token.kind == LETTERS]
    marks = {token.text for token in tokens if token.kind != LETTERS}
    if not 0 < len(words) <= MAX_WORDS or not marks <= _NOUN_MARKS or tokens[0].text in (",", "."):
        raise UnreadableError("not a noun")
    texts = [word.text for word in words]
    for at, text in enumerate(texts):
        allowed = text in _WITHIN and at < len(texts) - 1 and (at > 0 or text == "of")
        if text == "than" and _COMPARING & {*texts[: at - 1]} and len(texts) > at + 1:
            allowed = numerals.parse_number_words([texts[at + 1].lower()]) is None
        if text == "times" and at == len(texts) - 1:
            allowed = True
        if text.lower() in _CHANGING and not allowed:
            raise UnreadableError(f"the word {text!r}")
    if not all(map(_is_long, words)) or (len(texts) == 1 and len(texts[0]) == 1 and texts[0].isascii()):
        raise UnreadableError("letters that are factors")
    first = texts[0].lower()
    is_multiple = any(numerals.parse_number_words(["2", word]) for word in (first, first.removesuffix("s")))
    if is_multiple or any(map(_is_number, texts)) or (len(texts) == 1 and first in {*GREEK, *CONSTANTS}):
        raise UnreadableError("another number")
    return " ".join(token.text.lower() for token in tokens)


def _is_number(word: str) -> bool:
    """Return whether a word is a number above one. In some languages, the word for one is also an article."""
    value = numerals.parse_number_words([word.lower()])
    return value is not None and value > 1


def _is_long(word: Token) -> bool:
    """Return whether letters are a word: more than `MAX_FACTORS`, upright, or a short word such as an article."""
    if len(word.text) > MAX_FACTORS or not word.text.isascii() or word.text in _SHORT:
        return True
    return word.word and len(word.text) > 1


def _may_begin_unit(tokens: list[Token], at: int) -> bool:
    token = tokens[at]
    if token.kind == LETTERS:
        return True
    return (token.kind == COMMAND and token.text == "frac") or token.text in SIGNS


def _value(tokens: list[Token]) -> Expression:
    if tokens and tokens[-1].text in (",", "(", "="):
        raise UnreadableError("an incomplete value")
    return parse_worded_value(tokens)


def _merge_units(tokens: list[Token]) -> list[Token]:
    """Merge the tokens of a unit such as `°C` or `µm` into one; split Chinese numerals from the nouns after them."""
    merged: list[Token] = []
    at = 0
    while at < len(tokens):
        token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
        width = _degrees(tokens, at)
        if width:
            merged.append(Token(LETTERS, _SCALES[tokens[at + width - 1].text.lower()], True, True))
            at += width
            continue
        if _is_upright_group(tokens, at):
            merged.append(tokens[at + 1]._replace(word=True, spaced=True))
            at += 3
            continue
        if token.kind == COMMAND and token.text == "Omega":
            prefix = merged[-1].text if merged and merged[-1].kind == LETTERS and merged[-1].text in "kMmGµ" else ""
            merged[len(merged) - bool(prefix) :] = [Token(LETTERS, f"{prefix}Ω", True, True)]
        elif (
            token.kind == COMMAND
            and token.text == "mu"
            and following
            and (following.kind == LETTERS or following.text == "Omega")
        ):
            merged.append(Token(LETTERS, f"µ{following.text.replace('Omega', 'Ω')}", True, True))
            at += 1
        elif token.kind == LETTERS and not token.text.isascii() and not parse_unit([token])[1]:
            counted = numerals.split_chinese(token.text, bool(merged) and merged[-1].kind == NUMBER)
            merged += [Token(LETTERS, part, True, True) for part in counted]
        else:
            merged.append(token)
        at += 1
    return merged


def _is_upright_group(tokens: list[Token], at: int) -> bool:
    """Return whether letters in braces follow a space, as in `42\\,{\\rm m}`."""
    group = tokens[at : at + 3]
    return (
        len(group) == 3
        and group[0].spaced
        and (group[0].text, group[2].text) == ("{", "}")
        and group[1].kind == LETTERS
    )


def _degrees(tokens: list[Token], at: int) -> int:
    """Return the number of tokens of a temperature unit, including degree sign and braces; 0 if there is none."""
    end, start = at, at
    while end < len(tokens) and tokens[end].text in ("{", "}", "^") and end - at < 4:
        end += 1
    if end == len(tokens) or tokens[end].text != "degree":
        return 0
    end += 1
    while end < len(tokens) and tokens[end].text == "}" and end - start < 8:
        end += 1
    found = end < len(tokens) and tokens[end].kind == LETTERS and tokens[end].text.lower() in _SCALES
    return end + 1 - start if found else 0
