"""Names of units, currencies, numbers, days and verdicts in several languages: data for `reading`.

A unit is a row of `units`, a currency one of `currencies`, a language's number words one of `numerals`, its months,
days and halves of the day one of `calendar`, its verdicts and phrases one of `phrases`.
"""
