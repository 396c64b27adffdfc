"""Tasks of one's own for verifiers, whose reward is any route of rewardstack."""

import verifiers.v1 as vf

from rewardstack.trainers.verifiers import reward


class Data(vf.TaskData):
    answer: str


class RewardedTask(vf.Task[Data]):
    @vf.reward
    async def correct(self, trace: vf.Trace) -> float:
        return await reward(self.data, trace, "gsm8k")


class RewardedTaskset(vf.Taskset[RewardedTask]):
    def load(self) -> list[RewardedTask]:
        rows = [("A box holds 6 rows of 7 eggs. How many eggs? Answer behind ####.", "42"), ("What is 9 * 8? Answer behind ####.", "72")]
        return [RewardedTask(Data(prompt=prompt, answer=answer), self.config.task) for prompt, answer in rows]


__all__ = ["RewardedTaskset"]
