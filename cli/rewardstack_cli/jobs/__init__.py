"""`rewardstack submit`: score a file as a job of the reward server."""
