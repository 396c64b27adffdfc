"""Three questions of arithmetic for Inspect, whose scorer is a route of rewardstack."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate

from rewardstack.trainers.inspect_ai import rewardstack

ASKED = "{} Put the answer behind ####."
QUESTIONS = {
    "A tram has 38 seats and 3 of them are broken. How many can be sat on?": "35",
    "A box holds 6 rows of 7 eggs. How many eggs are that?": "42",
    "What is 9 times 8?": "72",
}


@task
def gsm8k_rewarded(data_source: str = "gsm8k") -> Task:
    """The task; `-T data_source=llm_judge_remote` asks the judge."""
    samples = [Sample(ASKED.format(question), target=answer) for question, answer in QUESTIONS.items()]
    return Task(samples, solver=generate(), scorer=rewardstack(data_source))
