"""The report of the copies that fit, as text, table and plain values."""

import msgspec

from extender.analysis.pod_placer import PodPlacer
from extender.answers.planning import FitCount
from extender.app import wiring
from extender.planning.fits import count_fitting_copies
from extender.planning.fits_report import format_fit, format_fit_table
from tests.unit.planning.clusters import SETUP, decode_pod, make_cache, node, pod


def count(cpu: str = "1", limit: int = 100, **spec: object) -> FitCount:
    cache = make_cache(*(node(f"n{number}", "2") for number in range(5)), node("small", "1"))
    web = decode_pod(pod("web", cpu, preemptionPolicy="Never", **spec))
    return count_fitting_copies(cache, web, PodPlacer(cache, SETUP.profiles, wiring.make_runtime(), 3), limit=limit)


def test_the_text_has_the_number_the_reasons_and_the_copies_by_node() -> None:
    result = count()
    assert result.message is not None
    assert format_fit(result) == (
        "11 more copies of default/web fit.\n"
        f"The last copy is on {result.last}.\n"
        "\n"
        "What stops the next copy\n"
        "  6 nodes  Insufficient cpu  n0, n1, n2 and 3 more\n"
        "\n"
        f"{result.message}\n"
        "\n"
        "Copies by node\n"
        "  2  on each of 5 nodes  n0, n1, n2 and 2 more\n"
        "  1  on 1 node           small\n"
    )


def test_the_values_always_have_the_same_keys() -> None:
    stopped, limited = msgspec.to_builtins(count()), msgspec.to_builtins(count(limit=1))
    assert list(stopped) == list(limited) == ["pod", "fits", "limitReached", "last", "placed", "stoppedBy", "message"]
    assert (stopped["fits"], stopped["placed"]["small"], stopped["limitReached"]) == (11, 1, False)
    assert [(group["reasons"], group["count"]) for group in stopped["stoppedBy"]] == [(["Insufficient cpu"], 6)]
    assert (limited["fits"], limited["limitReached"], limited["stoppedBy"], limited["message"]) == (1, True, [], None)


def test_a_pod_that_does_not_fit_and_a_limit_have_their_own_first_lines() -> None:
    assert format_fit(count("9")).startswith("No copy of default/web fits.\n\nWhat stops the next copy\n")
    first = format_fit(count(limit=1)).splitlines()[0]
    assert first == "At least 1 more copy of default/web fits; the count stopped at the limit."


def test_the_table_has_one_line_for_each_pod() -> None:
    gates = [{"name": "x"}]
    lines = format_fit_table([count("9"), count(limit=2), count(schedulingGates=gates)]).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["POD", "FITS"],
        ["default/web", "0"],
        ["default/web", "2"],
        ["default/web", "0"],
    ]
    assert lines[1].endswith("-          Insufficient cpu on 6 nodes")
    assert lines[2].endswith("the limit")
    assert lines[3].endswith("not enqueued because of SchedulingGates: waiting for scheduling gates: [x]")
