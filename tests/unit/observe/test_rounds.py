"""Every round of plugin calls is told to the observer, under the names of kube-scheduler's metric."""

from random import Random

from extender import wiring
from extender.decide import committing
from extender.decide.admission import held_back
from extender.decide.cycle import decide
from extender.decide.decision import Placed, Unplaced
from extender.decide.sampling import Search
from extender.framework.verdict import Code, Status
from tests.build import a_cluster, a_node, a_pod


class Heard:
    """Writes down the rounds."""

    def __init__(self) -> None:
        self.rounds: list[tuple[str, str, Code]] = []

        self.calls: list[tuple[str, str, Code]] = []

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append((plugin, point, code))

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        assert seconds >= 0
        self.rounds.append((profile, point, code))


def test_each_extension_point_of_a_cycle_is_told_once() -> None:
    """Source: H010, H011."""
    heard, profile = Heard(), wiring.scheduling().first
    engine = wiring.engine(heard)
    cluster = a_cluster(a_node("a"), a_node("b")).snapshot()
    query = cluster.query(a_pod())

    held_back(query, cluster, profile, engine)
    decide(query, cluster, profile, engine, Random(1), Search())

    points = ["PreEnqueue", "PreFilter", "Filter", "PreScore", "Score"]
    assert heard.rounds == [("default-scheduler", point, Code.SUCCESS) for point in points]


def test_rounds_and_calls_from_reserve_to_bound_are_told() -> None:
    """What a plugin planned is told by whoever carried it out. Source: H010, H012."""
    heard, profile = Heard(), wiring.scheduling().first
    engine = wiring.engine(heard)
    cluster = a_cluster(a_node("a")).snapshot()
    query = cluster.query(a_pod())

    decision = decide(query, cluster, profile, engine, Random(1), Search())
    assert isinstance(decision, Placed)
    heard.rounds.clear()

    assert committing.reserve(query, "a", cluster, profile, engine, decision.notes) is None
    committing.permit(query, "a", cluster, profile, engine, decision.notes)
    committing.prepare(query, "a", profile, engine, decision.notes)
    answer = committing.bind(query, "a", profile, engine)
    assert not isinstance(answer, Status)
    assert "Bind" not in {point for _, point, _ in heard.calls}
    engine.run.ended(answer[0], "Bind", None, engine.run.begin())
    committing.post_bind(query, "a", profile, engine, decision.notes)

    rounds = [("Reserve", Code.SUCCESS), ("Permit", Code.SUCCESS), ("PreBindPreFlight", Code.SKIP)]
    assert heard.rounds == [("default-scheduler", *each) for each in (*rounds, ("PostBind", Code.SUCCESS))]
    assert ("VolumeBinding", "PreBindPreFlight", Code.SKIP) in heard.calls
    assert heard.calls[-1] == ("DefaultBinder", "Bind", Code.SUCCESS)


def test_calls_are_told_with_what_the_plugin_answered() -> None:
    """Source: H012."""
    heard, profile = Heard(), wiring.scheduling().first
    engine = wiring.engine(heard)
    cluster = a_cluster(a_node("a")).snapshot()
    query = cluster.query(a_pod(requests={"cpu": "5"}))

    decision = decide(query, cluster, profile, engine, Random(1), Search())

    assert isinstance(decision, Unplaced)
    assert {
        ("NodePorts", "PreFilter", Code.SKIP),
        ("NodeResourcesFit", "PreFilter", Code.SUCCESS),
        ("NodeResourcesFit", "Filter", Code.UNRESOLVABLE),
        ("DefaultPreemption", "PostFilter", Code.UNSCHEDULABLE),
    } <= set(heard.calls)
    assert heard.rounds[-1] == ("default-scheduler", "PostFilter", Code.UNSCHEDULABLE)
