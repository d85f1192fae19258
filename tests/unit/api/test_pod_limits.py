"""The limits of a pod."""

from extender.api.pod_limits import find_exceeded_limit
from tests.build import make_pod


def test_a_usual_pod_exceeds_no_limit() -> None:
    pod = make_pod("web", labels={"app": "web"}, requests={"cpu": "1"}, spec={"nodeSelector": {"disk": "ssd"}})
    assert find_exceeded_limit(pod) == ""


def test_the_bytes_of_the_rules_are_limited_too() -> None:
    pod = make_pod("web", spec={"nodeSelector": {"disk": "x" * 300_000}})
    assert find_exceeded_limit(pod).endswith("have more than 1000 fields or 262144 bytes")


def test_the_containers_are_limited() -> None:
    containers = [{"name": "a"}] * 500
    assert find_exceeded_limit(make_pod("web", spec={"containers": containers, "initContainers": containers})) == ""
    pod = make_pod("web", spec={"containers": containers, "initContainers": [*containers, {"name": "b"}]})
    assert find_exceeded_limit(pod) == "spec.containers and initContainers: more than 1000"


def test_the_length_of_a_resource_name_is_limited() -> None:
    longest = f"{'x' * 253}/{'y' * 63}"
    assert find_exceeded_limit(make_pod("web", requests={longest: "1"})) == ""
    assert (
        find_exceeded_limit(make_pod("web", requests={f"{longest}y": "1"}))
        == "spec.resources and those of containers: a name with more than 317 characters"
    )
