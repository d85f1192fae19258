"""The default selector of a pod combines its services and its controller.

Source: pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector (1.36).
"""

from typing import Any

import pytest

from extender.cache.default_selector import determine_default_selector, get_last_default_selector
from tests.build import make_cluster, make_object, make_pod

LABELS = {"app": "web", "tier": "front", "team": "x"}


def make_service(selector: dict[str, str] | None, namespace: str = "default", name: str = "s") -> Any:
    meta = {"name": name, "namespace": namespace}
    return make_object({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": selector}})


def make_replica_set(selector: Any) -> Any:
    meta = {"name": "r", "namespace": "default"}
    return make_object(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"selector": selector}}
    )


def make_owned_pod(kind: str = "ReplicaSet", *, controller: bool = True) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "r", "uid": "u", "controller": controller}
    return make_pod(labels=LABELS, metadata={"ownerReferences": [owner]})


TIER = make_replica_set({"matchLabels": {"tier": "front"}})


@pytest.mark.parametrize(
    ("pod", "objects", "matched_labels"),
    [
        pytest.param(make_pod(labels=LABELS), [make_service({"app": "web"})], {"app": "web"}, id="a service"),
        pytest.param(
            make_pod(labels=LABELS),
            [make_service({"app": "web"}), make_service({"team": "x"}, name="t")],
            {"app": "web", "team": "x"},
            id="two services",
        ),
        pytest.param(make_owned_pod(), [TIER], {"tier": "front"}, id="its controller"),
        pytest.param(
            make_owned_pod(),
            [TIER, make_service({"app": "web"})],
            {"app": "web", "tier": "front"},
            id="a service and its controller",
        ),
    ],
)
def test_the_selector_combines_services_and_the_controller(
    pod: Any, objects: list[Any], matched_labels: dict[str, str]
) -> None:
    snapshot = make_cluster(*objects).snapshot()
    selector = determine_default_selector(snapshot.make_pod_info(pod), snapshot)
    assert selector.matches(matched_labels)
    for key in matched_labels:
        assert not selector.matches({other: value for other, value in matched_labels.items() if other != key})


@pytest.mark.parametrize(
    ("pod", "objects"),
    [
        pytest.param(make_pod(labels=LABELS), [make_service({"app": "db"})], id="a service of other pods"),
        pytest.param(make_pod(labels=LABELS), [make_service({"app": "web"}, "other")], id="a service elsewhere"),
        pytest.param(make_pod(labels=LABELS), [make_service(None)], id="a service without a selector"),
        pytest.param(make_owned_pod(), [], id="a controller that does not exist"),
        pytest.param(make_owned_pod(controller=False), [TIER], id="an owner that is no controller"),
        pytest.param(make_owned_pod("DaemonSet"), [TIER], id="a controller of another kind"),
    ],
)
def test_these_services_and_owners_do_not_count(pod: Any, objects: list[Any]) -> None:
    snapshot = make_cluster(*objects).snapshot()
    assert determine_default_selector(snapshot.make_pod_info(pod), snapshot).is_empty


def test_the_selector_follows_the_objects() -> None:
    cache = make_cluster()
    pod = cache.snapshot().make_pod_info(make_pod(labels=LABELS))
    assert get_last_default_selector(pod) is None
    empty = determine_default_selector(pod, cache.snapshot())
    assert empty.is_empty
    cache.add_or_update_object(make_service({"app": "web"}))
    assert get_last_default_selector(pod) is empty
    selector = determine_default_selector(pod, cache.snapshot())
    assert not selector.is_empty
    assert get_last_default_selector(pod) is selector
