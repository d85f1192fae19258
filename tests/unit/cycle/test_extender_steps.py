"""Driving the steps of a scheduling cycle."""

import numpy as np
import pytest

from extender.cycle.diagnosis import Diagnosis
from extender.cycle.extender_steps import ExtenderSteps, FilterStep, run_without_extenders
from extender.cycle.pre_filter import PreFilterRun


def test_the_result_of_a_cycle_without_steps_is_returned() -> None:
    def cycle() -> ExtenderSteps[str]:
        yield from ()
        return "n1"

    assert run_without_extenders(cycle()) == "n1"


def test_a_step_in_a_cycle_without_extenders_is_an_error() -> None:
    def cycle() -> ExtenderSteps[str]:
        yield FilterStep(Diagnosis(1, PreFilterRun(), np.ones(1, dtype=np.bool_)))
        return "n1"

    with pytest.raises(TypeError, match=r"a cycle without extenders yielded FilterStep\("):
        run_without_extenders(cycle())
