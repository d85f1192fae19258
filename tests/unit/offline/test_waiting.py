"""Which pods are asked about, and what is said when a name will not do."""

from pathlib import Path

import pytest

from extender import wiring
from extender.offline.capture import Capture, load_state, read_capture
from extender.offline.faults import InputError
from extender.offline.waiting import named, nominate_waiting, waiting

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}}
---
{apiVersion: v1, kind: Pod, metadata: {name: api-1, namespace: shop}}
---
{apiVersion: v1, kind: Pod, metadata: {name: cron, namespace: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: cron, namespace: b}, status: {nominatedNodeName: n1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: placed}, spec: {nodeName: n1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: done}, status: {phase: Failed}}
---
{apiVersion: v1, kind: Pod, metadata: {name: leaving, deletionTimestamp: "2026-01-01T00:00:00Z"}}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {schedulerName: other}
status: {nominatedNodeName: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: wait}]}
status: {nominatedNodeName: n1}
"""


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    return read_capture([str(path)])


def test_all_pods_wait_that_have_no_node_and_are_neither_over_nor_leaving(capture: Capture) -> None:
    pods = waiting(load_state(capture), ("default-scheduler",))
    assert [pod.key for pod in pods] == ["shop/web", "default/web", "shop/api-1", "a/cron", "b/cron", "default/gated"]


def test_pods_wait_for_their_own_scheduler(capture: Capture) -> None:
    assert [pod.key for pod in waiting(load_state(capture), ("other",))] == ["default/other"]


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["shop/web"], ["shop/web"]),
        (["web"], ["default/web"]),
        (["api-1"], ["shop/api-1"]),
        (["b/cron", "web", "default/web"], ["b/cron", "default/web"]),
    ],
    ids=[
        "namespace and name",
        "a name of the default namespace goes first",
        "a name that only one namespace has",
        "several, each once, in the order asked for",
    ],
)
def test_pods_are_found_by_name(capture: Capture, names: list[str], keys: list[str]) -> None:
    assert [pod.key for pod in named(names, capture, ["default-scheduler"])] == keys


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shop/wep", "Pod shop/wep: there is no such pod; did you mean shop/web, shop/api-1?"),
        ("kube-system/web", "Pod kube-system/web: there is no such pod; did you mean shop/web, default/web?"),
        ("api-2", "Pod api-2: there is no such pod; did you mean shop/api-1?"),
        ("zzz", "Pod zzz: there is no such pod"),
        ("cron", "Pod cron: several pods have this name; want one of a/cron, b/cron"),
        ("placed", "Pod default/placed: is on node n1 already; only pods without a node can be explained"),
        ("done", "Pod default/done: is over, its phase is Failed"),
        ("leaving", "Pod default/leaving: is being deleted"),
        (
            "other",
            'Pod default/other: waits for scheduler "other"; the configuration in force is for default-scheduler; '
            "give its own with --config",
        ),
    ],
)
def test_a_name_that_will_not_do_is_told_with_what_would(capture: Capture, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        named([name], capture, ["default-scheduler"])
    assert [str(fault).partition(": ")[2] for fault in caught.value.faults] == [message]


def test_a_pod_counts_as_nominated_unless_it_is_held_back_or_another_scheduler_s(capture: Capture) -> None:
    state = load_state(capture)
    nominate_waiting(state, wiring.scheduling().first, wiring.engine())
    nominated = {name: [pod.key for pod in pods] for name, pods in state.snapshot().nominations.items()}
    assert nominated == {"n1": ["b/cron"]}
