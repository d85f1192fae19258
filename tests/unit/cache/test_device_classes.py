"""The device class that serves an extended resource.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36).
"""

from extender.api.codec import from_builtins
from extender.api.kinds.devices import DeviceClass, ResourceClaim
from extender.cache.cache import Cache
from extender.cache.device_classes import get_class_by_resource, map_resources_to_device_classes

GPU = "example.com/gpu"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def make_class(name: str, created: str, resource: str | None = GPU) -> DeviceClass:
    spec = {} if resource is None else {"extendedResourceName": resource}
    return from_builtins({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}, DeviceClass)


def class_by_resource(*classes: DeviceClass) -> dict[str, str]:
    return {
        resource.split("/")[-1]: device_class.metadata.name
        for resource, device_class in map_resources_to_device_classes(classes).items()
    }


def test_a_class_serves_its_extended_resource_and_its_implicit_resource() -> None:
    assert class_by_resource(make_class("a", OLD)) == {"gpu": "a", "a": "a"}
    assert class_by_resource(make_class("a", OLD, None)) == {"a": "a"}


def test_of_two_classes_with_one_extended_resource_the_newer_serves_it() -> None:
    assert class_by_resource(make_class("a", OLD), make_class("b", NEW))["gpu"] == "b"
    assert class_by_resource(make_class("b", NEW), make_class("a", OLD))["gpu"] == "b"


def test_of_equally_old_classes_the_one_with_the_lower_name_serves() -> None:
    assert class_by_resource(make_class("b", OLD), make_class("a", OLD))["gpu"] == "a"
    assert class_by_resource(make_class("a", OLD), make_class("b", OLD))["gpu"] == "a"


def test_a_class_without_precedence_over_an_earlier_one_does_not_serve_its_implicit_resource() -> None:
    assert class_by_resource(make_class("b", NEW), make_class("a", OLD)) == {"gpu": "b", "b": "b"}
    assert class_by_resource(make_class("a", OLD), make_class("b", NEW)) == {"gpu": "b", "a": "a", "b": "b"}


def test_the_classes_of_a_snapshot_are_mapped_once_per_change() -> None:
    cache = Cache()
    cache.add_or_update_object(make_class("a", OLD))
    first = get_class_by_resource(cache.snapshot())
    assert sorted(first) == ["deviceclass.resource.kubernetes.io/a", GPU]
    cache.add_or_update_object(from_builtins({"metadata": {"name": "c", "namespace": "shop"}}, ResourceClaim))
    assert get_class_by_resource(cache.snapshot()) is first
    cache.add_or_update_object(make_class("b", NEW))
    second = get_class_by_resource(cache.snapshot())
    assert (first[GPU].metadata.name, second[GPU].metadata.name) == ("a", "b")
    cache.remove_object(DeviceClass, "b")
    assert get_class_by_resource(cache.snapshot())[GPU].metadata.name == "a"
