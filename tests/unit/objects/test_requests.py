"""Resource requests of pods: A111 to A113, B030, B036, B041."""

import pytest

from extender.objects import requests
from extender.objects.meta import Condition
from extender.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from extender.objects.record import RawQuantity

MIB = 1024 * 1024


def asks(**resources: RawQuantity) -> ResourceRequirements:
    return ResourceRequirements(requests={name.replace("_", "-"): amount for name, amount in resources.items()})


def container(name: str = "c", **resources: RawQuantity) -> Container:
    return Container(name=name, resources=asks(**resources))


def sidecar(name: str = "s", **resources: RawQuantity) -> Container:
    return Container(name=name, resources=asks(**resources), restart_policy="Always")


def incoming(**spec: object) -> dict[str, int]:
    return requests.incoming_requests(Pod(spec=PodSpec(**spec)))  # type: ignore[arg-type]


def test_app_containers_run_together() -> None:
    assert incoming(containers=(container(cpu="1", memory="1Gi"), container(cpu="500m"))) == {
        "cpu": 1500, "memory": 1024 * MIB,
    }  # fmt: skip


def test_an_ordinary_init_container_counts_only_if_it_needs_more_than_all_apps() -> None:
    apps = (container(cpu="1", memory="1Gi"), container(cpu="1"))
    assert incoming(containers=apps, init_containers=(container(cpu="3"), container(memory="2Gi"))) == {
        "cpu": 3000, "memory": 2048 * MIB,
    }  # fmt: skip
    assert incoming(containers=apps, init_containers=(container(cpu="1900m"),))["cpu"] == 2000


def test_sidecars_run_beside_the_apps() -> None:
    assert incoming(containers=(container(cpu="1"),), init_containers=(sidecar(cpu="500m"),)) == {"cpu": 1500}


def test_an_init_container_runs_beside_the_sidecars_declared_before_it_only() -> None:
    apps = (container(cpu="1"),)
    before = (sidecar(cpu="500m"), container(cpu="2"), sidecar(cpu="200m"))
    assert incoming(containers=apps, init_containers=before) == {"cpu": 2500}
    after = (container(cpu="2"), sidecar(cpu="500m"), sidecar(cpu="200m"))
    assert incoming(containers=apps, init_containers=after) == {"cpu": 2000}


def test_overhead_comes_on_top_also_of_pod_level_requests() -> None:
    overhead = {"cpu": "100m", "memory": "10Mi"}
    assert incoming(containers=(container(cpu="1"),), overhead=overhead) == {"cpu": 1100, "memory": 10 * MIB}
    assert incoming(containers=(container(cpu="1"),), resources=asks(cpu="3"), overhead=overhead) == {
        "cpu": 3100, "memory": 10 * MIB,
    }  # fmt: skip


def test_pod_level_requests_replace_the_sum_of_what_they_name() -> None:
    pod = Pod(
        spec=PodSpec(
            containers=(container(cpu="1", memory="1Gi", hugepages_2Mi="4Mi"),),
            resources=ResourceRequirements(
                requests={"cpu": "500m", "hugepages-2Mi": "8Mi", "ephemeral-storage": "1Gi"}
            ),
        )
    )
    assert requests.incoming_requests(pod) == {"cpu": 500, "memory": 1024 * MIB, "hugepages-2Mi": 8 * MIB}
    assert requests.pod_requests(pod, requests.Counting(status=False, pod_level=False))["cpu"] == 1000


def test_requests_are_summed_before_they_are_rounded() -> None:
    assert incoming(containers=tuple(container(cpu="400u") for _ in range(5))) == {"cpu": 2}


def test_resources_the_scheduler_does_not_count_are_left_out_and_zeros_are_kept() -> None:
    spec: dict[str, RawQuantity] = {"storage": "1Gi", "pods": "1", "example.com/gpu": "0", "ephemeral-storage": "1k"}
    assert incoming(containers=(Container(resources=ResourceRequirements(requests=spec)),)) == {
        "example.com/gpu": 0, "ephemeral-storage": 1000,
    }  # fmt: skip


def resized(reason: str = "") -> Pod:
    status = ContainerStatus(name="c", resources=asks(cpu="2"), allocated_resources={"cpu": "3", "memory": "1Mi"})
    conditions = (Condition(type="PodResizePending", status="True", reason=reason),) if reason else ()
    return Pod(
        spec=PodSpec(containers=(container(cpu="4"),)),
        status=PodStatus(container_statuses=(status,), conditions=conditions),
    )


def test_a_pod_on_a_node_counts_for_the_most_of_wanted_actual_and_allocated() -> None:
    assert requests.placed_requests(resized()) == {"cpu": 4000, "memory": MIB}
    assert requests.placed_requests(resized("Deferred")) == {"cpu": 4000, "memory": MIB}


def test_an_infeasible_resize_does_not_count() -> None:
    assert requests.placed_requests(resized("Infeasible")) == {"cpu": 3000, "memory": MIB}


def test_a_pod_to_place_is_judged_by_its_spec_when_filtering_and_by_its_status_when_balancing() -> None:
    pod = resized("Infeasible")
    assert requests.incoming_requests(pod) == {"cpu": 4000}
    assert requests.pod_requests(pod, requests.BY_DEFAULT) == {"cpu": 3000, "memory": MIB}


def test_a_status_without_resources_says_nothing() -> None:
    status = ContainerStatus(name="c", allocated_resources={"cpu": "9"})
    pod = Pod(spec=PodSpec(containers=(container(cpu="1"),)), status=PodStatus(container_statuses=(status,)))
    assert requests.placed_requests(pod) == {"cpu": 1000}


def test_the_status_of_sidecars_counts_and_that_of_ordinary_init_containers_does_not() -> None:
    statuses = tuple(ContainerStatus(name=name, resources=asks(cpu="5")) for name in ("s", "i"))
    pod = Pod(
        spec=PodSpec(containers=(container(cpu="1"),), init_containers=(container("i", cpu="1"), sidecar(cpu="1"))),
        status=PodStatus(init_container_statuses=statuses),
    )
    assert requests.placed_requests(pod) == {"cpu": 6000}


def test_pod_level_resources_in_effect_count_for_a_pod_on_a_node() -> None:
    pod = Pod(
        spec=PodSpec(containers=(container(cpu="1"),), resources=asks(cpu="2", memory="1Mi")),
        status=PodStatus(resources=asks(cpu="3"), allocated_resources={"cpu": "4"}),
    )
    assert requests.placed_requests(pod) == {"cpu": 4000, "memory": MIB}
    assert requests.incoming_requests(pod) == {"cpu": 2000, "memory": MIB}
    assert requests.pod_requests(pod, requests.Counting(pod_level_resize=False)) == {"cpu": 2000, "memory": MIB}


def test_a_pod_level_request_that_is_neither_actual_nor_allocated_is_zero_while_infeasible() -> None:
    pod = Pod(
        spec=PodSpec(resources=asks(cpu="2", memory="1Mi")),
        status=PodStatus(
            resources=asks(cpu="1"), conditions=(Condition(type="PodResizePending", reason="Infeasible"),)
        ),
    )
    assert requests.placed_requests(pod) == {"cpu": 1000, "memory": 0}


def test_containers_without_requests_count_for_defaults_in_scores() -> None:
    pod = Pod(spec=PodSpec(containers=(container(), container(cpu="1"), container(cpu="0", memory="0"))))
    assert requests.placed_nonzero_requests(pod) == (1100, 400 * MIB)
    assert requests.fit_score_requests(pod) == {"cpu": 1100, "memory": 400 * MIB}
    assert requests.pod_requests(pod, requests.BY_DEFAULT) == {"cpu": 1000, "memory": 0}


def test_init_containers_count_for_defaults_too() -> None:
    pod = Pod(spec=PodSpec(containers=(container(cpu="50m", memory="1Mi"),), init_containers=(container(),)))
    assert requests.placed_nonzero_requests(pod) == (100, 200 * MIB)


def test_pod_level_requests_leave_defaults_only_for_what_nobody_requests() -> None:
    pod = Pod(spec=PodSpec(containers=(container(), container()), resources=asks(cpu="3")))
    assert requests.placed_nonzero_requests(pod) == (3000, 400 * MIB)
    named = Pod(spec=PodSpec(containers=(container(), container(memory="1Mi")), resources=asks(cpu="3")))
    assert requests.placed_nonzero_requests(named) == (3000, MIB)


def test_the_fit_scorer_does_not_see_pod_level_requests() -> None:
    pod = Pod(spec=PodSpec(containers=(container(cpu="1"),), resources=asks(cpu="3", memory="1Gi")))
    assert requests.fit_score_requests(pod) == {"cpu": 1000, "memory": 200 * MIB}
    assert requests.pod_requests(pod, requests.BY_DEFAULT) == {"cpu": 3000, "memory": 1024 * MIB}


def test_a_request_that_is_no_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match='quantity "5gb"'):
        incoming(containers=(container(memory="5gb"),))


NAMES = {
    "an extended resource": ("example.com/gpu", True, True),
    "a quota name": ("requests.example.com/gpu", False, False),
    "a native name": ("cpu", False, False),
    "another native name": ("storage", False, False),
    "a prefixed native name": ("kubernetes.io/thing", False, True),
    "a subdomain of it": ("x.kubernetes.io/thing", False, True),
    "huge pages": ("hugepages-2Mi", False, True),
    "attachable volumes": ("attachable-volumes-csi-x", False, True),
    "no valid name": ("Example.com/gpu", False, False),
    "a name with a space": ("example.com/g pu", False, False),
}


@pytest.mark.parametrize(("name", "extended", "scalar"), NAMES.values(), ids=NAMES.keys())
def test_resource_names_are_sorted_by_kind(name: str, extended: bool, scalar: bool) -> None:
    assert requests.is_extended(name) is extended
    assert requests.is_scalar(name) is scalar


def test_devices_may_serve_extended_resources_and_those_named_after_a_class() -> None:
    assert requests.is_dra_extended("example.com/gpu")
    assert requests.is_dra_extended("deviceclass.resource.kubernetes.io/gpu")
    assert not requests.is_dra_extended("cpu")
