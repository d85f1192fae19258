"""Reserve, Permit, PreBindPreFlight, PreBind and Bind: what each answer leads to."""

from typing import Any

import pytest

from extender.decide import committing
from extender.decide.engine import Engine
from extender.framework.points import ALLOW, Permission, Plan, PreFlight, Write
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from tests.build import a_cluster, a_node, a_pod
from tests.unit.decide.stand_ins import a_profile

CLUSTER = a_cluster(a_node("n1")).snapshot()
POD = CLUSTER.query(a_pod("web"))
WRITE = Plan((Write("bind", "Pod", "default", "web", {}, "binding"),))
SKIP, NO = Status(Code.SKIP), Status(Code.UNSCHEDULABLE, ("no",))


class Step:
    """A plugin that gives these answers and writes down that it was asked."""

    def __init__(self, name: str, diary: list[str], **answers: Any) -> None:
        self.name, self._diary = name, diary
        for point, answer in answers.items():
            setattr(self, point, self._answering(point, answer))

    def _answering(self, point: str, answer: Any) -> Any:
        def method(*_: Any) -> Any:
            self._diary.append(f"{self.name}.{point}")
            if isinstance(answer, Exception):
                raise answer
            return answer

        return method


def steps(diary: list[str], *answers: dict[str, Any]) -> Profile:
    """Plugins P0, P1, ... that answer so."""
    return a_profile(*(Step(f"P{i}", diary, **given) for i, given in enumerate(answers)))


def test_reservations_are_made_in_order() -> None:
    diary: list[str] = []
    profile = steps(diary, {"reserve": None, "unreserve": None}, {"reserve": None, "unreserve": None})

    assert committing.reserve(POD, "n1", CLUSTER, profile, Engine(), {}) is None
    assert diary == ["P0.reserve", "P1.reserve"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (NO, Status(Code.UNSCHEDULABLE, ("no",), "P1")),
        (ValueError("lost"), Status(Code.ERROR, ('running Reserve plugin "P1": ValueError: lost',), "P1")),
        (Status(Code.ERROR, ("lost",)), Status(Code.ERROR, ('running Reserve plugin "P1": lost',), "P1")),
    ],
    ids=["a rejection is the plugin's own", "what is raised is an error", "an error is told with its place"],
)
def test_a_failed_reservation_takes_all_back_last_first(answer: Any, status: Status) -> None:
    """Also of plugins that were not asked yet (A068)."""
    diary: list[str] = []
    undone = {"unreserve": None}
    profile = steps(diary, {"reserve": None, **undone}, {"reserve": answer, **undone}, {"reserve": None, **undone})

    assert committing.reserve(POD, "n1", CLUSTER, profile, Engine(), {}) == status
    assert diary == ["P0.reserve", "P1.reserve", "P2.unreserve", "P1.unreserve", "P0.unreserve"]


def test_taking_back_goes_on_after_a_fault() -> None:
    diary: list[str] = []
    profile = steps(diary, {"reserve": None, "unreserve": None}, {"reserve": None, "unreserve": ValueError("oh")})

    faults = committing.unreserve(POD, "n1", profile, Engine(), {}).faults

    assert diary == ["P1.unreserve", "P0.unreserve"]
    assert [str(fault) for fault in faults] == ['running Unreserve plugin "P1": ValueError: oh']


def test_permit_collects_who_wants_to_wait_and_caps_the_time() -> None:
    """Source: A069."""
    wait = Status(Code.WAIT, ("for the others",))
    profile = steps([], {"permit": Permission(wait, 30)}, {"permit": ALLOW}, {"permit": Permission(wait, 7200)})

    got = committing.permit(POD, "n1", CLUSTER, profile, Engine(), {})

    assert got.timeouts == {"P0": 30, "P2": 900}
    assert got.status == Status(
        Code.WAIT, ("for the others", "one or more plugins asked to wait and no plugin rejected pod")
    )


def test_a_rejecting_permit_ends_the_round() -> None:
    diary: list[str] = []
    profile = steps(diary, {"permit": Permission(NO)}, {"permit": ALLOW})

    assert committing.permit(POD, "n1", CLUSTER, profile, Engine(), {}).status == Status(
        Code.UNSCHEDULABLE, ("no",), "P0"
    )
    assert diary == ["P0.permit"]


def test_without_permit_plugins_the_pod_is_allowed() -> None:
    assert committing.permit(POD, "n1", CLUSTER, a_profile(), Engine(), {}).status is None


ACTS, ACTS_BESIDE = PreFlight(), PreFlight(parallel=True)


@pytest.mark.parametrize(
    ("answers", "groups"),
    [
        ([ACTS_BESIDE, ACTS_BESIDE], [["P0", "P1"]]),
        ([ACTS_BESIDE, ACTS, ACTS_BESIDE], [["P0"], ["P1"], ["P2"]]),
        ([ACTS_BESIDE, SKIP, ACTS_BESIDE], [["P0"], ["P2"]]),
        ([ACTS_BESIDE, PreFlight(parallel=True, skip=True), ACTS_BESIDE], [["P0", "P2"]]),
        ([SKIP, ACTS], [["P1"]]),
    ],
    ids=[
        "plugins that may run side by side are one group",
        "one that must run alone closes the group",
        "even if it is skipped",
        "but not if it might have run beside them",
        "a skipped plugin is not run",
    ],
)
def test_pre_bind_plugins_run_in_groups(answers: list[Any], groups: list[list[str]]) -> None:
    """Source: A032."""
    profile = steps([], *({"pre_bind": WRITE, "pre_bind_pre_flight": answer} for answer in answers))

    got = committing.prepare(POD, "n1", profile, Engine(), {})

    assert [[plugin.name for plugin in group] for group in got.groups] == groups
    assert got.status is None


def test_if_all_skip_there_is_nothing_to_prepare() -> None:
    profile = steps([], {"pre_bind": WRITE, "pre_bind_pre_flight": SKIP})

    assert committing.prepare(POD, "n1", profile, Engine(), {}).status == SKIP


def test_a_code_that_pre_flight_must_not_give_is_an_error() -> None:
    """Source: A052."""
    profile = steps([], {"pre_bind": WRITE, "pre_bind_pre_flight": NO})

    status = committing.prepare(POD, "n1", profile, Engine(), {}).status

    assert status == Status(
        Code.ERROR,
        (
            'PreBindPreFlight P0 returned "Unschedulable", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status",
        ),
        "P0",
    )


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        ([SKIP, WRITE], WRITE),
        ([WRITE, NO], WRITE),
        ([SKIP, NO], Status(Code.UNSCHEDULABLE, ("no",), "P1")),
        ([SKIP], SKIP),
        ([ValueError("down")], Status(Code.ERROR, ('running Bind plugin "P0": ValueError: down',), "P0")),
    ],
    ids=[
        "the first that does not skip binds",
        "nobody is asked after it",
        "a rejection is final",
        "all skip",
        "a fault is an error",
    ],
)
def test_who_binds(answers: list[Any], want: Plan | Status) -> None:
    """Source: A034, A035."""
    answer = committing.bind(POD, "n1", steps([], *({"bind": a} for a in answers)), Engine())
    assert (answer if isinstance(answer, Status) else answer[1]) == want
