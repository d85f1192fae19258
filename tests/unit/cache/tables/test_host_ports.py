"""Host ports conflict by protocol, port and IP, where 0.0.0.0 is the wildcard.

Source: kube-scheduler/framework/types.go, HostPortInfo.CheckConflict (1.36).
"""

from collections.abc import Iterator

import pytest

from extender.cache.tables.host_ports import HostPort, HostPortTable, get_host_ports, host_ports_conflict
from tests.build import make_pod

ANY, ONE, OTHER = "0.0.0.0", "10.0.0.1", "10.0.0.2"  # noqa: S104  addresses of the API


def test_ports_of_app_containers_and_sidecars_count() -> None:
    spec = {
        "initContainers": [
            {"name": "init", "ports": [{"hostPort": 1}]},
            {"name": "sidecar", "restartPolicy": "Always", "ports": [{"hostPort": 2, "protocol": "UDP"}]},
        ],
        "containers": [{"name": "app", "ports": [{"containerPort": 3}, {"hostPort": 4, "hostIP": ONE}]}],
    }
    assert get_host_ports(make_pod(spec=spec)) == (("UDP", 2, ANY), ("TCP", 4, ONE))


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        pytest.param(("TCP", 80, ONE), ("TCP", 80, ONE), True, id="equal"),
        pytest.param(("TCP", 80, ONE), ("TCP", 80, ANY), True, id="the wildcard"),
        pytest.param(("TCP", 80, ONE), ("TCP", 80, OTHER), False, id="another IP"),
        pytest.param(("TCP", 80, ANY), ("UDP", 80, ANY), False, id="another protocol"),
        pytest.param(("TCP", 80, ANY), ("TCP", 81, ANY), False, id="another port"),
    ],
)
def test_two_ports_conflict(first: HostPort, second: HostPort, conflict: bool) -> None:
    assert host_ports_conflict((first,), (second,)) is conflict
    assert host_ports_conflict((second,), (first,)) is conflict
    table = HostPortTable()
    table.add(3, (first,))
    assert table.find_conflicting_rows((second,)) == ({3} if conflict else set())


def test_only_the_given_rows_are_checked() -> None:
    table = HostPortTable()
    for row in range(3):
        table.add(row, (("TCP", 80, ANY),))
    assert table.find_conflicting_rows((("TCP", 80, ONE),), [2, 5]) == {2}


def test_the_rows_are_not_searched_for_a_port_that_no_pod_uses() -> None:
    """A pod may have 20,000 host ports, and each step of its preemption checks all nodes."""

    class CountedRows(list[int]):
        reads = 0

        def __iter__(self) -> Iterator[int]:
            CountedRows.reads += 1
            return super().__iter__()

    table = HostPortTable()
    table.add(2, (("TCP", 80, ANY),))
    ports = tuple(("TCP", number, ONE) for number in range(80, 180))
    assert table.find_conflicting_rows(ports, CountedRows(range(5))) == {2}
    assert CountedRows.reads == 1


def test_a_port_is_in_use_until_all_its_pods_are_removed() -> None:
    table, port = HostPortTable(), ("TCP", 80, ANY)
    table.add(0, (port,))
    table.add(0, (port,))
    table.remove(0, (port,))
    assert table.find_conflicting_rows((port,)) == {0}
    table.remove(0, (port,))
    assert table.find_conflicting_rows((port,)) == set()


def test_a_port_is_freed_for_all_its_pods_at_once() -> None:
    table, port = HostPortTable(), ("TCP", 80, ANY)
    table.add(0, (port,))
    fork = table.fork()
    fork.add(0, (port,))
    fork.free_ports(0, (port,))
    assert fork.find_conflicting_rows((port,)) == set()
    assert table.find_conflicting_rows((port,)) == {0}
