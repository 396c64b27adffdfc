"""Takes the place of `align_anything/models/remote_rm/remote_rm_client.py`: the same class, on rewardstack's client.

`rewardstack.remote_rm_client.RemoteRewardModel` returns a list; Align-Anything's GRPO trainer wants a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rewardstack import remote_rm_client


class RemoteRewardModel(remote_rm_client.RemoteRewardModel):
    """Rewards as a tensor of shape (samples,); everything else is as in rewardstack's class."""

    def score(  # type: ignore[override]
        self, prompts: Sequence[str], responses: Sequence[str], golden_responses: Sequence[str] | None = None
    ) -> torch.Tensor:
        """The rewards of a batch; arguments and errors as rewardstack's class has them."""
        return torch.tensor(super().score(prompts, responses, golden_responses))
