"""Custom tasks for verifiers, whose reward is any route of rewardstack."""

import verifiers.v1 as vf

from rewardstack.trainers.verifiers import reward

ASKED = "{} Put the answer behind ####."
ROWS = [("A box holds 6 rows of 7 eggs. How many eggs are that?", "42"), ("What is 9 times 8?", "72")]


class Data(vf.TaskData):
    answer: str


class RewardedTask(vf.Task[Data]):
    @vf.reward
    async def correct(self, trace: vf.Trace) -> float:
        return await reward(self.data, trace, "gsm8k")


class RewardedTaskset(vf.Taskset[RewardedTask]):
    def load(self) -> list[RewardedTask]:
        return [RewardedTask(Data(prompt=ASKED.format(one), answer=answer), self.config.task) for one, answer in ROWS]


__all__ = ["RewardedTaskset"]
