"""Scores against labels, for `rewardstack evaluate`: rows with labels, figures, the report and its page.

No way of scoring enters: rows are scored by what `rewardstack score` calls, or read with their scores from its OUT.
"""
