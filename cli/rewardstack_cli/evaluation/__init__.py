"""Compare scores with labels, for `rewardstack evaluate`: labeled rows, figures, the report and its page.

Nothing is scored here: `rewardstack score` functions score the rows, or the scores are read from its OUT.
"""
