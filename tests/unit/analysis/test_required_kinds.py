"""The kinds that a pod's scheduling reads, and the marks of results that rest on kinds that are not recorded."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.analysis.explain import PodReport
from extender.analysis.recorded_cluster import parse_recording
from extender.analysis.required_kinds import (
    GROUP_KINDS,
    RECORDED_KINDS,
    describe_missing_budgets,
    format_missing_kinds,
    get_plural,
    list_missing_kinds,
    list_required_kinds,
)
from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.api.scheme import KINDS
from extender.app import wiring
from extender.client.rest_mapping import ENDPOINTS
from extender.config.feature_gates import FeatureGates
from tests.explain import explain_pods

ROOT = Path(__file__).resolve().parents[3]
PROFILE = wiring.build_setup(gates=FeatureGates({"DRADeviceTaintRules": True})).first_profile
NODES = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
"""
CLAIM_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: db}
spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}
"""
DEVICE_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {resourceClaims: [{name: gpu, resourceClaimName: gpu}]}
"""
CLAIM = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimList
items: []
"""


def make_pod(spec: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    """Make a pod with the priority that an API server sets."""
    meta = {"name": "p", "namespace": "default", **metadata}
    return from_builtins({"metadata": meta, "spec": {"priority": 0, **(spec or {})}}, Pod)


def explain(text: str, name: str) -> PodReport:
    setup = wiring.build_setup()
    recording = parse_recording(text.encode(), "c.yaml")
    (report,) = explain_pods(recording, [name], setup.profiles, setup.profiles, wiring.make_runtime())
    return report


@pytest.mark.parametrize(
    ("pod", "kinds"),
    [
        (make_pod(), ["Namespace", "PodDisruptionBudget"]),
        (make_pod({"preemptionPolicy": "Never"}), ["Namespace"]),
        (
            make_pod({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]}),
            [
                *("PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
                *("CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "Namespace", "PodDisruptionBudget"),
            ],
        ),
        (
            make_pod({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}),
            [
                *("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"),
                *("Namespace", "PodDisruptionBudget", "DeviceTaintRule"),
            ],
        ),
        (
            make_pod({"containers": [{"name": "a", "resources": {"requests": {"example.com/gpu": "1"}}}]}),
            [
                *("DeviceClass", "ResourceSlice", "ResourceClaim"),
                *("Namespace", "PodDisruptionBudget", "DeviceTaintRule"),
            ],
        ),
        (
            make_pod(
                labels={"app": "web"},
                ownerReferences=[{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}],
            ),
            ["Service", "ReplicaSet", "Namespace", "PodDisruptionBudget"],
        ),
        (
            make_pod({"priorityClassName": "high", "priority": None}),
            ["Namespace", "PodDisruptionBudget", "PriorityClass"],
        ),
        (make_pod({"priority": None}), ["Namespace", "PodDisruptionBudget", "PriorityClass"]),
    ],
)
def test_the_kinds_depend_on_what_the_pod_asks_for(pod: Pod, kinds: list[str]) -> None:
    assert list_required_kinds(pod, PROFILE) == kinds


def test_a_claim_that_is_not_recorded_is_no_missing_claim() -> None:
    report = explain(NODES + CLAIM_POD, "db")
    line = (
        "not recorded: persistentvolumeclaims, persistentvolumes, storageclasses; "
        'the command "record" records all kinds'
    )
    assert report.to_text().splitlines()[:4] == [
        "Pod default/db",
        '  fits on none of 2 nodes: persistentvolumeclaim "data" not found',
        f"  {line}",
        '  0/2 nodes are available: persistentvolumeclaim "data" not found. not found',
    ]
    values = report.to_values()
    assert values["notRecorded"] == ["persistentvolumeclaims", "persistentvolumes", "storageclasses"]
    assert values["warnings"] == [line]
    assert report.to_line() == (
        'default/db: fits on none of 2 nodes: persistentvolumeclaim "data" not found '
        "(not recorded: persistentvolumeclaims, persistentvolumes, storageclasses)\n"
    )


@pytest.mark.parametrize(("claim", "is_known"), [("", False), (CLAIM, True)], ids=["not recorded", "recorded"])
def test_a_resource_claim_that_is_not_recorded_is_no_missing_claim(claim: str, is_known: bool) -> None:
    line = 'not recorded: resourceclaims; the command "record" records all kinds'
    report = explain(NODES + DEVICE_POD + claim, "train")
    assert report.to_text().splitlines()[1:] == [
        '  is not enqueued, because of DynamicResources: could not find ResourceClaim "default/gpu"',
        *([] if is_known else [f"  {line}"]),
    ]
    assert report.to_values()["warnings"] == ([] if is_known else [line])


def test_a_list_of_a_kind_without_items_records_the_kind() -> None:
    lists = "".join(
        f"---\napiVersion: {version}\nkind: {kind}List\nitems: []\n"
        for version, kind in (
            ("v1", "PersistentVolumeClaim"),
            ("v1", "PersistentVolume"),
            ("storage.k8s.io/v1", "StorageClass"),
        )
    )
    report = explain(NODES + CLAIM_POD + lists, "db")
    assert report.missing_kinds == ()
    assert "not recorded" not in report.to_text()


def test_a_recording_names_its_kinds_and_those_that_could_not_be_read() -> None:
    text = (
        NODES
        + CLAIM_POD
        + """\
---
apiVersion: v1
kind: List
recordedKinds: [Node, Pod, PersistentVolume, StorageClass]
unreadableKinds: {PersistentVolumeClaim: 'grant "list" on persistentvolumeclaims'}
items: []
"""
    )
    report = explain(text, "db")
    assert report.warnings == ['not readable: persistentvolumeclaims; grant "list" on persistentvolumeclaims']


def test_services_are_missing_only_if_scores_choose_the_node() -> None:
    pod = make_pod(labels={"app": "web"})
    assert list_missing_kinds(pod, PROFILE, ["Node", "Pod"], scored=True, preempts=False) == ["Service"]
    assert list_missing_kinds(pod, PROFILE, ["Node", "Pod"], scored=False, preempts=False) == []
    assert list_missing_kinds(pod, PROFILE, ["Node", "Pod", "Service"], scored=True, preempts=False) == []


def test_budgets_are_missing_only_if_pods_are_evicted() -> None:
    assert list_missing_kinds(make_pod(), PROFILE, [], scored=False, preempts=True) == ["PodDisruptionBudget"]
    assert list_missing_kinds(make_pod(), PROFILE, [], scored=False, preempts=False) == []


def test_namespaces_are_missing_only_for_a_namespace_selector() -> None:
    term = {"topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "a"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make_pod({"affinity": affinity})
    assert list_missing_kinds(pod, PROFILE, [], scored=False, preempts=False) == ["Namespace"]


def test_only_a_priority_class_that_a_pod_names_is_missing_unless_it_is_of_the_system() -> None:
    pod = make_pod({"priorityClassName": "system-node-critical", "priority": None})
    assert list_missing_kinds(pod, PROFILE, [], scored=False, preempts=False) == []
    assert list_missing_kinds(make_pod({"priority": None}), PROFILE, [], scored=False, preempts=False) == []
    other = make_pod({"priorityClassName": "high", "priority": None})
    assert list_missing_kinds(other, PROFILE, [], scored=False, preempts=False) == ["PriorityClass"]


def test_device_taint_rules_are_missing_only_if_they_may_not_be_read() -> None:
    pod = make_pod({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]})
    recorded = ["ResourceClaim", "ResourceSlice", "DeviceClass"]
    assert list_missing_kinds(pod, PROFILE, recorded, scored=False, preempts=False) == []
    unreadable = ["DeviceTaintRule"]
    assert list_missing_kinds(pod, PROFILE, recorded, unreadable, scored=False, preempts=False) == unreadable
    assert list_missing_kinds(make_pod(), PROFILE, recorded, unreadable, scored=False, preempts=False) == []


def test_an_extended_resource_needs_its_devices_also_without_dynamic_resources() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "example.com/gpu", "weight": 1}]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": name} for name in ("PrioritySort", "NodeResourcesFit", "DefaultBinder")],
                    }
                },
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
            }
        ],
    }
    gates = FeatureGates({"DRAExtendedResource": True})
    profile = wiring.build_setup_from_document(document, "test", gates).first_profile
    pod = make_pod({"containers": [{"name": "a", "resources": {"requests": {"example.com/gpu": "1"}}}]})
    assert list_required_kinds(pod, profile) == ["DeviceClass", "ResourceSlice", "ResourceClaim"]
    assert list_required_kinds(make_pod(), profile) == []


def test_the_documented_role_allows_all_kinds_that_a_recording_may_have() -> None:
    role = yaml.safe_load((ROOT / "docs" / "examples" / "view-only-role.yaml").read_text())
    allowed = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
    endpoints = [ENDPOINTS[kind] for kind in (*RECORDED_KINDS, *GROUP_KINDS, "DeviceTaintRule")]
    resources = {(endpoint.api_version.rpartition("/")[0], endpoint.plural) for endpoint in endpoints}
    assert resources - allowed == set()


def test_unreadable_and_unrecorded_kinds_have_separate_lines() -> None:
    assert format_missing_kinds(["Service", "Namespace"], {"Namespace": "forbidden"}) == [
        'not recorded: services; the command "record" records all kinds',
        "not readable: namespaces; forbidden",
    ]
    assert format_missing_kinds([], {"Namespace": "forbidden"}) == []


def test_every_recorded_kind_has_a_type_and_an_api_path() -> None:
    assert set(RECORDED_KINDS) <= {kind for _, kind in KINDS}
    assert set(RECORDED_KINDS) <= set(ENDPOINTS)
    assert get_plural("StorageClass") == "storageclasses"
    assert get_plural("Unknown") == "unknowns"


def test_budgets_that_may_not_be_listed_are_named_with_the_right_to_grant() -> None:
    reason = 'grant the verb "list" on poddisruptionbudgets (403)'
    assert describe_missing_budgets((), {"PodDisruptionBudget": reason}) == (
        f"not readable: poddisruptionbudgets; evictions are answered as if there were none; {reason}"
    )
    assert describe_missing_budgets(("PodDisruptionBudget",), {}) == ""
