"""Every round of plugin calls is told to the observer, under the names of kube-scheduler's metric."""

from random import Random

from extender import wiring
from extender.decide.admission import held_back
from extender.decide.cycle import decide
from extender.decide.sampling import Search
from extender.framework.verdict import Code
from tests.build import a_cluster, a_node, a_pod


class Heard:
    """Writes down the rounds."""

    def __init__(self) -> None:
        self.rounds: list[tuple[str, str, Code]] = []

    def called(self, *_: object) -> None:
        """Nothing."""

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
