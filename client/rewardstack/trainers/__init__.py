"""One module per trainer: it converts what the trainer passes into requests, and scores into what it expects.

No module here scores; each calls the public API of `rewardstack.api`.
"""
