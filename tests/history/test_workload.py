"""A workload depends only on its seed, and has operations of all kinds."""

from collections import Counter

from tests.history.workload import OPERATIONS_PER_SECOND, make_operations


def test_equal_seeds_give_equal_operations() -> None:
    assert make_operations(3, 5.0) == make_operations(3, 5.0)
    assert make_operations(3, 5.0) != make_operations(4, 5.0)


def test_a_longer_workload_begins_with_the_shorter_one() -> None:
    short = make_operations(3, 5.0)
    assert make_operations(3, 10.0)[: len(short)] == short


def test_operations_are_ordered_by_time_and_as_many_as_the_rate_says() -> None:
    operations = make_operations(1, 100.0)
    times = [operation.time for operation in operations]
    assert times == sorted(times)
    distinct = len(set(times))
    assert 0.8 * 100 * OPERATIONS_PER_SECOND < distinct < 1.2 * 100 * OPERATIONS_PER_SECOND


def test_a_workload_has_operations_of_all_kinds() -> None:
    counts = Counter((each.action, each.manifest["kind"]) for each in make_operations(1, 60.0))
    expected = {
        *(
            ("create", kind)
            for kind in ("Pod", "PersistentVolumeClaim", "ResourceClaim", "Node", "PodDisruptionBudget")
        ),
        *(
            ("delete", kind)
            for kind in ("Pod", "PersistentVolumeClaim", "ResourceClaim", "Node", "PodDisruptionBudget")
        ),
        *(("patch", "Node"), ("finish", "Pod"), ("ungate", "Pod")),
    }
    assert set(counts) == expected


def test_claims_are_created_before_their_pod_and_deleted_after_it() -> None:
    positions: dict[tuple[str, str], int] = {}
    for number, operation in enumerate(make_operations(1, 60.0)):
        positions.setdefault((operation.action, operation.manifest["metadata"]["name"]), number)
    claims = [(action, name) for action, name in positions if name.endswith(("-data", "-gpu"))]
    assert len(claims) > 20
    for action, name in claims:
        pod = positions[action, name.rpartition("-")[0]]
        assert (positions[action, name] < pod) == (action == "create")
