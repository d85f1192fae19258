"""The openb trace: FGD and Fill allocate what is published, and more."""

import pytest

from extender.analysis.recorded_cluster import read_recording
from extender.experiments.gpu_trace import Trace, make_trace
from extender.experiments.policies import Policy
from extender.experiments.published_results import TRACE_FIGURES, measure_trace
from extender.experiments.runner import run_experiment
from tests.bench.experiment import TRACE


@pytest.fixture(scope="module")
def trace() -> Trace:
    return make_trace(read_recording([str(TRACE)]))


def test_the_trace_is_that_of_the_paper(trace: Trace) -> None:
    assert len(trace.nodes) == 1213
    assert trace.capacity == 6_212_000
    assert len(trace.pods) == 8152
    assert sum(trace.gpu_milli) == 6_086_800
    assert measure_trace(trace) == TRACE_FIGURES["default"]


def test_fgd_allocates_what_is_published_and_fill_more(trace: Trace) -> None:
    """The authors publish a mean of 95.23 % for FGD when the demand reaches 100 %.

    The expected values of FGD are those of a second implementation in C, with the same order of pods and nodes.
    """
    fgd, fill = (run_experiment(trace, Policy(name), 42).allocated_percent for name in ("FGD", "Fill"))
    assert [fgd[column] for column in (80, 90, 100, 110, 130)] == [80.01, 90.01, 94.97, 95.06, 95.2]
    assert fgd[100] == pytest.approx(95.23, abs=0.3)
    assert [fill[column] for column in (80, 90, 100, 110, 130)] == [80.0, 88.44, 96.28, 96.36, 96.41]
