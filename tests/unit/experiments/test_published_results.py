"""The published results have a value for each variant, policy and demand."""

from itertools import pairwise

from extender.experiments.published_results import PUBLISHED_PERCENTS, REFERENCE_POLICY, TRACE_FIGURES
from extender.experiments.runner import REPORTED_DEMAND_PERCENTS

PUBLISHED_POLICIES = ["Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"]


def test_each_of_the_five_variants_has_the_six_published_policies() -> None:
    assert list(PUBLISHED_PERCENTS) == ["default", "gpuspec33", "gpushare100", "multigpu50", "cpu200"]
    assert all(list(percents) == PUBLISHED_POLICIES for percents in PUBLISHED_PERCENTS.values())
    assert REFERENCE_POLICY in PUBLISHED_POLICIES


def test_each_policy_has_a_value_for_each_reported_demand_and_none_falls() -> None:
    rows = [row for percents in PUBLISHED_PERCENTS.values() for row in percents.values()]
    assert {len(row) for row in rows} == {len(REPORTED_DEMAND_PERCENTS)}
    assert all(low <= high for row in rows for low, high in pairwise(row))


def test_the_values_at_full_demand_are_those_of_the_authors() -> None:
    at_100 = REPORTED_DEMAND_PERCENTS.index(100)
    assert [percents["FGD"][at_100] for percents in PUBLISHED_PERCENTS.values()] == [95.23, 87.84, 86.64, 97.09, 94.82]
    assert [percents["BestFit"][at_100] for percents in PUBLISHED_PERCENTS.values()] == [
        92.86,
        80.39,
        84.62,
        95.62,
        92.15,
    ]


def test_the_figures_differ_between_the_variants() -> None:
    assert list(TRACE_FIGURES) == list(PUBLISHED_PERCENTS)
    assert len(set(TRACE_FIGURES.values())) == 5
