"""Placeholders for values that a trainer has and a reward server does not. Reading a placeholder raises an error."""

from __future__ import annotations

import dataclasses
import sys
from argparse import Namespace
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from rewardstack.errors import RewardstackError

SLIME_MODULES = ("slime.utils.types", "miles.utils.types")
SLIME_REMEDY = (
    "a reward server gets only prompt, response, label and metadata of a sample; put the value into the sample's "
    "metadata and read sample.metadata[{name!r}]"
)
REMEDY = (
    "a reward server does not get it from the trainer; send it as extra_info.{name}, or give the parameter a default "
    "({name}=None)"
)

_guarded_classes: dict[type, type] = {}


class UnavailableError(RewardstackError):
    """Raised if a reward function reads a value that the server does not have. The message says what to do."""


class Unavailable:
    """The argument for a parameter without a value: a function can pass it on, but not read it.

    Args:
        name: the parameter's name.
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python and libraries probe for special methods
            raise AttributeError(name)
        self._refuse()

    def _refuse(self, *_: Any) -> NoReturn:
        name = self.__dict__["_name"]
        raise UnavailableError(f"{name} is not available: {REMEDY.format(name=name)}")

    __getitem__ = __iter__ = __len__ = __bool__ = __contains__ = _refuse


class _UnavailableField:
    """A field of slime's `Sample` that raises an error when it is read, unless the reward function has set it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, sample: object, owner: type) -> NoReturn:
        raise UnavailableError(f"sample.{self._name} is not available: {SLIME_REMEDY.format(name=self._name)}")


class _SampleWithoutSlime(Namespace):
    """Replaces slime's `Sample` in a process that has not imported slime."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _UnavailableField(name).__get__(self, type(self))


def slime_sample(values: Mapping[str, Any]) -> Any:
    """Return a sample for a function with slime's signature.

    The sample is an instance of slime's `Sample` if this process has imported that class.

    Args:
        values: the fields that the server has; reading any other field raises `UnavailableError`.
    """
    for module in SLIME_MODULES:
        if module in sys.modules:
            sample = sys.modules[module].Sample(**values)
            sample.__class__ = _guarded(type(sample), values)
            for name in vars(type(sample)):
                vars(sample).pop(name, None)  # remove default values, which would hide the fields that raise
            return sample
    return _SampleWithoutSlime(**values)


def _guarded(kind: type, filled: Collection[str]) -> type:
    """Return a subclass of a dataclass. Reading one of its fields raises an error unless the field is in `filled`."""
    if kind in _guarded_classes:
        return _guarded_classes[kind]
    names = [field.name for field in dataclasses.fields(kind) if field.name not in filled]
    members: dict[str, Any] = {name: _UnavailableField(name) for name in names}
    members["__repr__"] = lambda sample: f"{kind.__name__}({vars(sample)})"
    _guarded_classes[kind] = type(kind.__name__, (kind,), {**members, "__module__": kind.__module__})
    return _guarded_classes[kind]
