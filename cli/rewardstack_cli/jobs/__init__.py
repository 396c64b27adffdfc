"""`rewardstack submit`: a file as a job of the reward server."""
