"""A CLMLClassifier that learns from a stack, and takes its place where it is used."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ._base.rows import Part
from ._base.twins import warn_of_twins
from ._classifier import CLMLClassifier
from ._maps.teacher import Teacher

# What a student has of the stack's parameters, the places of a run apart.
_SHARED = (
    "losses",
    "incumbent",
    "calibrate",
    "max_front",
    "max_seconds",
    "checkpoint_every",
    "n_jobs",
)
# What was of the fit alone.
_OF_THE_FIT: dict[str, Any] = {"checkpoint": None, "max_seconds": None}


def check_distillable(part: Part, *, stack_warns: bool) -> None:
    """Refuse rows that networks cannot read, and warn of rows that are alike.

    Parameters
    ----------
    part : Part
    stack_warns : bool
        Whether the stack itself warns of them. It does not where its folds keep them
        together, or where nothing is fitted on them, but a student's members leave out
        rows one by one.

    Raises
    ------
    ValueError
    """
    try:
        CLMLClassifier()._check_X_y(part.X, part.Y, reset=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "distil=True trains a CLMLClassifier on X, which takes numbers alone. Turn "
            f"X into numbers before it is stacked, or leave distil=False. {error}"
        ) from error
    if not stack_warns:
        warn_of_twins(
            part.X,
            "give distilled_ no trust beyond that of the stack: distil=True trains "
            "networks that leave out rows one by one, whatever cv keeps together",
        )


def new_student(stack: Any, seed: int) -> CLMLClassifier:
    """Return the classifier that is to learn from a stack.

    Parameters
    ----------
    stack : LebesgueStackingClassifier
        For its parameters.
    seed : int
    """
    checkpoint = stack.checkpoint
    return CLMLClassifier(
        **{name: getattr(stack, name) for name in _SHARED},
        checkpoint=None if checkpoint is None else Path(checkpoint, "distilled"),
        random_state=seed,
    )


def teach(student: CLMLClassifier, teacher: Teacher, part: Part, stack: Any) -> None:
    """Fit a student.

    Parameters
    ----------
    student : CLMLClassifier
        After an interrupt it has ``interrupted_`` if it is a model.
    teacher : Teacher
    part : Part
        The rows of the stack.
    stack : LebesgueStackingClassifier
    """
    indicator = isinstance(stack.classes_, list)
    y = part.Y if indicator else stack.classes_[part.Y[:, 0]]
    began = time.perf_counter()
    try:
        student._fit_to(teacher, part.X, y, part.weight)
    finally:
        student.set_params(**_OF_THE_FIT)
        student.label_names_ = stack.label_names_
    if stack.verbose:
        seconds = time.perf_counter() - began
        print(f"distilled in {student.n_epochs_} epochs  {seconds:.2f} s", flush=True)
