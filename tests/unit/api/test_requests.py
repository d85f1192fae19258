"""Resource requests of pods."""

import pytest

from extender.api import requests
from extender.api.kinds.meta import Condition, RawQuantity
from extender.api.kinds.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements

MIB = 1024 * 1024


OPTIONS_1_36 = requests.PodResourcesOptions(maximum_of_sums=False)


def resource_requests(**resources: RawQuantity) -> ResourceRequirements:
    return ResourceRequirements(requests={name.replace("_", "-"): amount for name, amount in resources.items()})


def container(name: str = "c", **resources: RawQuantity) -> Container:
    return Container(name=name, resources=resource_requests(**resources))


def sidecar(name: str = "s", **resources: RawQuantity) -> Container:
    return Container(name=name, resources=resource_requests(**resources), restart_policy="Always")


def incoming_requests(**spec: object) -> dict[str, int]:
    return requests.incoming_pod_requests(Pod(spec=PodSpec(**spec)))  # type: ignore[arg-type]


def test_requests_of_app_containers_are_added() -> None:
    assert incoming_requests(containers=(container(cpu="1", memory="1Gi"), container(cpu="500m"))) == {
        "cpu": 1500, "memory": 1024 * MIB,
    }  # fmt: skip


def test_an_init_container_counts_only_if_it_requests_more_than_all_app_containers() -> None:
    app_containers = (container(cpu="1", memory="1Gi"), container(cpu="1"))
    init_containers = (container(cpu="3"), container(memory="2Gi"))
    assert incoming_requests(containers=app_containers, init_containers=init_containers) == {
        "cpu": 3000, "memory": 2048 * MIB,
    }  # fmt: skip
    assert incoming_requests(containers=app_containers, init_containers=(container(cpu="1900m"),))["cpu"] == 2000


def test_sidecars_are_added_to_app_containers() -> None:
    assert incoming_requests(containers=(container(cpu="1"),), init_containers=(sidecar(cpu="500m"),)) == {"cpu": 1500}


def test_an_init_container_runs_together_with_earlier_sidecars_only() -> None:
    app_containers = (container(cpu="1"),)
    sidecar_first = (sidecar(cpu="500m"), container(cpu="2"), sidecar(cpu="200m"))
    assert incoming_requests(containers=app_containers, init_containers=sidecar_first) == {"cpu": 2500}
    sidecars_last = (container(cpu="2"), sidecar(cpu="500m"), sidecar(cpu="200m"))
    assert incoming_requests(containers=app_containers, init_containers=sidecars_last) == {"cpu": 2000}


def test_overhead_is_added_to_container_and_pod_level_requests() -> None:
    overhead = {"cpu": "100m", "memory": "10Mi"}
    assert incoming_requests(containers=(container(cpu="1"),), overhead=overhead) == {"cpu": 1100, "memory": 10 * MIB}
    pod_level = resource_requests(cpu="3")
    assert incoming_requests(containers=(container(cpu="1"),), resources=pod_level, overhead=overhead) == {
        "cpu": 3100, "memory": 10 * MIB,
    }  # fmt: skip


def test_pod_level_requests_replace_the_sums_of_their_resources() -> None:
    pod = Pod(
        spec=PodSpec(
            containers=(container(cpu="1", memory="1Gi", hugepages_2Mi="4Mi"),),
            resources=ResourceRequirements(
                requests={"cpu": "500m", "hugepages-2Mi": "8Mi", "ephemeral-storage": "1Gi"}
            ),
        )
    )
    assert requests.incoming_pod_requests(pod) == {"cpu": 500, "memory": 1024 * MIB, "hugepages-2Mi": 8 * MIB}
    assert (
        requests.pod_requests(pod, requests.PodResourcesOptions(use_status_resources=False, pod_level_resources=False))[
            "cpu"
        ]
        == 1000
    )


def test_requests_are_summed_before_they_are_rounded() -> None:
    assert incoming_requests(containers=tuple(container(cpu="400u") for _ in range(5))) == {"cpu": 2}


def test_uncounted_resources_are_omitted_and_requests_of_zero_are_included() -> None:
    spec: dict[str, RawQuantity] = {"storage": "1Gi", "pods": "1", "example.com/gpu": "0", "ephemeral-storage": "1k"}
    assert incoming_requests(containers=(Container(resources=ResourceRequirements(requests=spec)),)) == {
        "example.com/gpu": 0, "ephemeral-storage": 1000,
    }  # fmt: skip


def resized_pod(reason: str = "") -> Pod:
    status = ContainerStatus(
        name="c", resources=resource_requests(cpu="2"), allocated_resources={"cpu": "3", "memory": "1Mi"}
    )
    conditions = (Condition(type="PodResizePending", status="True", reason=reason),) if reason else ()
    return Pod(
        spec=PodSpec(containers=(container(cpu="4"),)),
        status=PodStatus(container_statuses=(status,), conditions=conditions),
    )


def test_an_assigned_pod_has_the_maximum_of_requested_actuated_and_allocated() -> None:
    assert requests.pod_requests(resized_pod()) == {"cpu": 4000, "memory": MIB}
    assert requests.pod_requests(resized_pod("Deferred")) == {"cpu": 4000, "memory": MIB}


def test_an_infeasible_resize_is_ignored() -> None:
    assert requests.pod_requests(resized_pod("Infeasible")) == {"cpu": 3000, "memory": MIB}


def test_the_status_of_the_pod_to_schedule_counts_only_with_status_resources() -> None:
    pod = resized_pod("Infeasible")
    assert requests.incoming_pod_requests(pod) == {"cpu": 4000}
    assert requests.pod_requests(pod, requests.DEFAULT_POD_RESOURCES_OPTIONS) == {"cpu": 3000, "memory": MIB}


def test_in_1_36_a_status_without_resources_is_ignored() -> None:
    status = ContainerStatus(name="c", allocated_resources={"cpu": "9"})
    pod = Pod(spec=PodSpec(containers=(container(cpu="1"),)), status=PodStatus(container_statuses=(status,)))
    assert requests.pod_requests(pod, OPTIONS_1_36) == {"cpu": 1000}
    assert requests.pod_requests(pod) == {"cpu": 9000}


def test_the_status_of_sidecars_counts_and_that_of_init_containers_does_not() -> None:
    statuses = tuple(ContainerStatus(name=name, resources=resource_requests(cpu="5")) for name in ("s", "i"))
    pod = Pod(
        spec=PodSpec(containers=(container(cpu="1"),), init_containers=(container("i", cpu="1"), sidecar(cpu="1"))),
        status=PodStatus(init_container_statuses=statuses),
    )
    assert requests.pod_requests(pod) == {"cpu": 6000}


def test_pod_level_resources_in_the_status_count_for_an_assigned_pod() -> None:
    pod = Pod(
        spec=PodSpec(containers=(container(cpu="1"),), resources=resource_requests(cpu="2", memory="1Mi")),
        status=PodStatus(resources=resource_requests(cpu="3"), allocated_resources={"cpu": "4"}),
    )
    assert requests.pod_requests(pod) == {"cpu": 4000, "memory": MIB}
    assert requests.incoming_pod_requests(pod) == {"cpu": 2000, "memory": MIB}
    assert requests.pod_requests(pod, requests.PodResourcesOptions(in_place_pod_level_resize=False)) == {
        "cpu": 2000,
        "memory": MIB,
    }


def test_an_infeasible_pod_level_request_without_status_is_zero_in_1_36_and_absent_since_1_37() -> None:
    pod = Pod(
        spec=PodSpec(resources=resource_requests(cpu="2", memory="1Mi")),
        status=PodStatus(
            resources=resource_requests(cpu="1"), conditions=(Condition(type="PodResizePending", reason="Infeasible"),)
        ),
    )
    assert requests.pod_requests(pod, OPTIONS_1_36) == {"cpu": 1000, "memory": 0}
    assert requests.pod_requests(pod) == {"cpu": 1000}


def test_containers_without_requests_get_defaults_in_scores() -> None:
    pod = Pod(spec=PodSpec(containers=(container(), container(cpu="1"), container(cpu="0", memory="0"))))
    assert requests.assigned_pod_nonzero_requests(pod) == (1100, 400 * MIB)
    assert requests.fit_score_requests(pod) == {"cpu": 1100, "memory": 400 * MIB}
    assert requests.pod_requests(pod, requests.DEFAULT_POD_RESOURCES_OPTIONS) == {"cpu": 1000, "memory": 0}


def test_init_containers_without_requests_get_defaults() -> None:
    pod = Pod(spec=PodSpec(containers=(container(cpu="50m", memory="1Mi"),), init_containers=(container(),)))
    assert requests.assigned_pod_nonzero_requests(pod) == (100, 200 * MIB)


def test_pod_level_requests_limit_defaults_to_unrequested_resources() -> None:
    pod = Pod(spec=PodSpec(containers=(container(), container()), resources=resource_requests(cpu="3")))
    assert requests.assigned_pod_nonzero_requests(pod) == (3000, 400 * MIB)
    with_memory = Pod(
        spec=PodSpec(containers=(container(), container(memory="1Mi")), resources=resource_requests(cpu="3"))
    )
    assert requests.assigned_pod_nonzero_requests(with_memory) == (3000, MIB)


def test_the_fit_scorer_ignores_pod_level_requests() -> None:
    pod = Pod(spec=PodSpec(containers=(container(cpu="1"),), resources=resource_requests(cpu="3", memory="1Gi")))
    assert requests.fit_score_requests(pod) == {"cpu": 1000, "memory": 200 * MIB}
    assert requests.pod_requests(pod, requests.DEFAULT_POD_RESOURCES_OPTIONS) == {"cpu": 3000, "memory": 1024 * MIB}


def test_an_invalid_request_is_rejected() -> None:
    with pytest.raises(ValueError, match='quantity "5gb"'):
        incoming_requests(containers=(container(memory="5gb"),))


NAMES = {
    "an extended resource": ("example.com/gpu", True, True),
    "a quota name": ("requests.example.com/gpu", False, False),
    "a native name": ("cpu", False, False),
    "another native name": ("storage", False, False),
    "a prefixed native name": ("kubernetes.io/name", False, True),
    "a native subdomain": ("x.kubernetes.io/name", False, True),
    "huge pages": ("hugepages-2Mi", False, True),
    "attachable volumes": ("attachable-volumes-csi-x", False, True),
    "an invalid prefix": ("Example.com/gpu", False, False),
    "a name with a space": ("example.com/g pu", False, False),
}


@pytest.mark.parametrize(("name", "extended", "scalar"), NAMES.values(), ids=NAMES.keys())
def test_resource_names_are_classified(name: str, extended: bool, scalar: bool) -> None:
    assert requests.is_extended_resource(name) is extended
    assert requests.is_scalar_resource(name) is scalar


def test_devices_can_satisfy_extended_resources_and_device_classes() -> None:
    assert requests.is_dra_extended_resource("example.com/gpu")
    assert requests.is_dra_extended_resource("deviceclass.resource.kubernetes.io/gpu")
    assert not requests.is_dra_extended_resource("cpu")


def test_the_sum_of_more_than_32_requests_is_not_cached() -> None:
    """The cache of the sums of 4,096 pods with 1,000 containers each took 2 GB."""
    requests._sum_container_requests.cache_clear()
    containers = tuple(container(cpu=f"{number}m", memory=f"{number}Mi") for number in range(1, 18))
    assert incoming_requests(containers=containers) == {"cpu": 153, "memory": 153 * MIB}
    assert requests._sum_container_requests.cache_info().currsize == 0
    assert incoming_requests(containers=containers[:16]) == {"cpu": 136, "memory": 136 * MIB}
    assert requests._sum_container_requests.cache_info().currsize == 1
