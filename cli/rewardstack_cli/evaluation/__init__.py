"""Compare scores with labels, for `rewardstack evaluate`: labeled rows, metrics, the report and its page.

The scores come from the same code as those of `rewardstack score`, or from an output file of that command.
"""
