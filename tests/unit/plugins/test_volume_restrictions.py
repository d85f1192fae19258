"""The PreFilter extensions of VolumeRestrictions: added and removed pods change the uses of a claim."""

from typing import Any

import pytest

from extender.cache.hypothesis import Hypothesis
from extender.framework.status import Code
from extender.plugins.volume_restrictions import VolumeRestrictions
from tests.build import make_cluster, make_node, make_object, make_pod, make_pod_info


def make_volumes_spec(*claims: str) -> dict[str, Any]:
    return {"volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]}


def make_claim(name: str) -> Any:
    meta = {"name": name, "namespace": "default"}
    return make_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": meta,
            "spec": {"accessModes": ["ReadWriteOncePod"]},
        }
    )


@pytest.mark.parametrize(
    ("changes", "is_rejected"),
    [
        pytest.param([("-", "default", "data")], False, id="without its user the claim is not in use"),
        pytest.param(
            [("-", "default", "data"), ("+", "default", "data")], True, id="a user that is added again uses it"
        ),
        pytest.param([("-", "default", "data"), ("+", "other", "data")], True, id="the namespace is ignored"),
        pytest.param([("-", "default", "other")], True, id="the user of another claim does not matter"),
        pytest.param([], True, id="with its user the claim is in use"),
    ],
)
def test_added_and_removed_pods_change_the_uses_of_a_claim(
    changes: list[tuple[str, str, str]], is_rejected: bool
) -> None:
    cache = make_cluster(
        make_node("node"),
        make_pod("user", node="node", spec=make_volumes_spec("data")),
        make_claim("data"),
        make_claim("other"),
    )
    snapshot = cache.snapshot()
    plugin, pod = VolumeRestrictions(), make_pod_info(make_pod("pod", spec=make_volumes_spec("data")), cache)
    state = plugin.pre_filter(pod, snapshot).state
    changed_state = plugin.clone(state)
    hypothesis = Hypothesis(snapshot)
    for index, (sign, namespace, claim) in enumerate(changes):
        changed_pod = make_pod_info(make_pod(f"p{index}", namespace=namespace, spec=make_volumes_spec(claim)), cache)
        assumed_pod = hypothesis.assume_pod(changed_pod, "node")
        update = plugin.add_pod if sign == "+" else plugin.remove_pod
        update(pod, assumed_pod, 0, hypothesis.snapshot(), changed_state)
    rejections = plugin.filter(pod, snapshot.view(), changed_state)
    assert [group.reason.code for group in rejections] == ([Code.UNSCHEDULABLE] if is_rejected else [])
    assert len(plugin.filter(pod, snapshot.view(), state)) == 1, "the cloned state is unchanged"
