"""One module per trainer: it converts the trainer's arguments into requests, and the scores into the trainer's format.

No module here scores; each calls the public API of `rewardstack.api`.
"""
