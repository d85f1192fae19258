"""Tests of the demo's story: the same for the same seed, and small enough that the crowd always finds room."""

from extender.demo.story import Crowd, story
from extender.objects.quantity import milli_value


def names(crowd: Crowd) -> list[tuple[float, str]]:
    return [(step.at, made["metadata"]["name"]) for step in story(crowd).steps for made in step.create]


def test_the_same_seed_tells_the_same_story() -> None:
    assert names(Crowd(5, 30, seed=1)) == names(Crowd(5, 30, seed=1))
    assert names(Crowd(5, 30, seed=1)) != names(Crowd(5, 30, seed=2))


def test_steps_stand_in_order_and_the_crowd_has_the_size_asked_for() -> None:
    told = names(Crowd(5, 30))
    assert told == sorted(told, key=lambda each: each[0])
    assert len([name for _, name in told if name.startswith(("web-", "api-", "report-"))]) == 30
    assert len([made for made in story(Crowd(5, 30)).objects if made["kind"] == "Node"]) == 6


def test_a_crowd_never_asks_for_more_than_its_nodes_have() -> None:
    for crowd in (Crowd(3, 1), Crowd(3, 240), Crowd(8, 60), Crowd(100, 8000)):
        asked = [
            milli_value(made["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            for step in story(crowd).steps
            for made in step.create
            if made["metadata"]["name"].startswith(("web-", "api-", "report-"))
        ]
        assert len(asked) == crowd.pods
        assert max(asked) <= 1500
        assert sum(asked) < 0.8 * crowd.nodes * 8000


def test_no_crowd_at_all_leaves_the_story() -> None:
    assert [name for _, name in names(Crowd(3, 0))] == [
        "training", "cache", "month-end", "import", "node-new", "answers", "training-again"
    ]  # fmt: skip
