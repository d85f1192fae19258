"""The broken linear function through the configured points.

Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
buildRequestedToCapacityRatioScorerFunction (1.36).
"""

import pytest

from extender.plugin_parts.function_shape import UtilizationShapePoint, build_broken_linear_function

VALUES: dict[str, tuple[list[tuple[int, int]], dict[int, int]]] = {
    "constant before the first point and after the last": (
        [(20, 3), (40, 5)],
        {0: 30, 20: 30, 30: 40, 40: 50, 100: 50},
    ),
    "a single point is a constant": ([(50, 7)], {0: 70, 50: 70, 100: 70}),
    "a rising line is rounded down": ([(0, 0), (30, 10)], {10: 33, 20: 66, 30: 100}),
    "a falling line is rounded up": ([(0, 10), (30, 0)], {10: 67, 20: 34, 30: 0}),
    "lines meet at the points": ([(0, 0), (70, 10), (100, 2)], {35: 50, 70: 100, 85: 60, 100: 20}),
    "a negative utilization has the value of 0": ([(0, 4), (100, 10)], {-1: 40, -100: 40}),
}


@pytest.mark.parametrize(("points", "expected"), VALUES.values(), ids=VALUES)
def test_the_function_goes_through_its_points(points: list[tuple[int, int]], expected: dict[int, int]) -> None:
    values = build_broken_linear_function([UtilizationShapePoint(utilization, score) for utilization, score in points])
    assert values.shape == (201,)
    assert {utilization: int(values[utilization]) for utilization in expected} == expected
