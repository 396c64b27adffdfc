"""Data for `extraction` and `reading`: words and signs in several languages.

`units` has a row for each unit, and `currencies` for each currency. Other modules have a row for each language:
`numerals` for number words, `calendar` for months and weekdays, and `announcements` for phrases that announce an
answer. `phrases` groups answers such as "yes", and other words, by their meaning.
"""
