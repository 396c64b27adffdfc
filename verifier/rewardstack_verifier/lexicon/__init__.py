"""Data for `extraction` and `reading`: words and signs in several languages.

`units` has a row for each unit, `currencies` for each currency, `numerals` for the number words of each language,
`calendar` for its months and weekdays, and `announcements` for its phrases that announce an answer. `phrases` groups
verdicts and other words by meaning.
"""
