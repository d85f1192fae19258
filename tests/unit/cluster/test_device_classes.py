"""Which device class serves an extended resource. Source: B034."""

from extender.cluster.device_classes import classes_by_resource
from extender.objects.codec import from_builtins
from extender.objects.devices import DeviceClass

GPU = "example.com/gpu"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def a_class(name: str, created: str, serves: str | None = GPU) -> DeviceClass:
    spec = {} if serves is None else {"extendedResourceName": serves}
    return from_builtins({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}, DeviceClass)


def served(*classes: DeviceClass) -> dict[str, str]:
    return {resource.split("/")[-1]: each.metadata.name for resource, each in classes_by_resource(classes).items()}


def test_a_class_serves_the_resource_it_names_and_its_own() -> None:
    assert served(a_class("a", OLD)) == {"gpu": "a", "a": "a"}
    assert served(a_class("a", OLD, None)) == {"a": "a"}


def test_the_newest_class_serves_a_resource_that_two_name() -> None:
    assert served(a_class("a", OLD), a_class("b", NEW))["gpu"] == "b"
    assert served(a_class("b", NEW), a_class("a", OLD))["gpu"] == "b"


def test_of_equally_old_classes_the_lower_name_serves() -> None:
    assert served(a_class("b", OLD), a_class("a", OLD))["gpu"] == "a"
    assert served(a_class("a", OLD), a_class("b", OLD))["gpu"] == "a"


def test_a_class_that_loses_on_arrival_does_not_serve_its_own_resource_either() -> None:
    assert served(a_class("b", NEW), a_class("a", OLD)) == {"gpu": "b", "b": "b"}
    assert served(a_class("a", OLD), a_class("b", NEW)) == {"gpu": "b", "a": "a", "b": "b"}
