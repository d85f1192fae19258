"""Near misses of a rejected pod: amounts, names and a remedy for each plugin."""

from pathlib import Path

import pytest

from extender.analysis.explain import PodReport
from extender.analysis.explanation.near_misses import NearMiss, find_near_misses
from extender.analysis.recorded_cluster import read_recording
from extender.app import wiring
from tests.explain import explain_pods

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a, disk: hdd}}
spec: {%s}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 3}}
---
apiVersion: v1
kind: Pod
metadata: {name: here, labels: {app: web}}
spec:
  nodeName: n1
  containers: [{name: a, ports: [{hostPort: 80}], resources: {requests: {cpu: 3500m, memory: 512Mi}}}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: zone, labelSelector: {matchLabels: {app: noisy}}}
---
apiVersion: v1
kind: Pod
metadata: {name: new, labels: %s}
spec: %s
"""
SPREAD = """\
{topologySpreadConstraints: [{maxSkew: 1, topologyKey: %s, whenUnsatisfiable: DoNotSchedule,
  labelSelector: {matchLabels: {app: web}}}]}"""
POD_AFFINITY = """\
{affinity: {%s: {requiredDuringSchedulingIgnoredDuringExecution: [
  {topologyKey: %s, labelSelector: {matchLabels: {app: %s}}}]}}}"""
AFFINITY = "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: %s}}}}"
UNMATCHED = "node(s) didn't match Pod's node affinity/selector"


def requests(cpu: str = "1m", memory: str = "1Mi", gpu: str = "0") -> str:
    amounts = f"{{cpu: {cpu}, memory: {memory}, example.com/gpu: {gpu}}}"
    return f"{{containers: [{{name: a, resources: {{requests: {amounts}}}}}]}}"


CASES = {
    "a resource that is used up": (
        "",
        "{}",
        requests(cpu="1"),
        ["Insufficient cpu: wants 1000m, but only 500m are free (500m short)"],
    ),
    "a resource of which there is not enough at all": (
        "",
        "{}",
        requests(memory="10Gi"),
        ["Insufficient memory: wants 10Gi, but only 7.5Gi are free (2.5Gi short); even the empty node has only 8Gi"],
    ),
    "a resource the node does not have": (
        "",
        "{}",
        requests(gpu="2"),
        ["Insufficient example.com/gpu: wants 2, but the node has none"],
    ),
    "a taint": (
        "taints: [{key: a, value: b, effect: NoExecute}]",
        "{}",
        "{}",
        ["node(s) had untolerated taint(s): tolerate a=b:NoExecute, or remove it from the node"],
    ),
    "a taint without a value": (
        "taints: [{key: a, effect: NoSchedule}]",
        "{}",
        "{}",
        ["node(s) had untolerated taint(s): tolerate a:NoSchedule, or remove it from the node"],
    ),
    "a taint of an autoscaler": (
        "taints: [{key: ToBeDeletedByClusterAutoscaler, value: '1764570000', effect: NoSchedule}]",
        "{}",
        "{}",
        [
            "node(s) had untolerated taint(s): ToBeDeletedByClusterAutoscaler=1764570000:NoSchedule; "
            "the cluster autoscaler deletes the node"
        ],
    ),
    "a cordon": (
        "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]",
        "{}",
        "{}",
        [
            "node(s) were unschedulable: uncordon the node",
            "node(s) had untolerated taint(s): uncordon the node",
        ],
    ),
    "a node selector": (
        "",
        "{}",
        "{nodeSelector: {disk: ssd, zone: a, arch: arm}}",
        [f'{UNMATCHED}: wants arch=arm, but the node lacks it; wants disk=ssd, but the node has "hdd"'],
    ),
    "a node affinity shows the term that lacks least": (
        "",
        "{}",
        AFFINITY % "[{matchExpressions: [{key: x, operator: Exists}, {key: z, operator: Exists}]}, "
        "{matchExpressions: [{key: disk, operator: NotIn, values: [hdd, tape]}]}]",
        [f'{UNMATCHED}: wants disk NotIn hdd, tape, but the node has "hdd"'],
    ),
    "a node affinity with many values shows the first ten": (
        "",
        "{}",
        AFFINITY % "[{matchExpressions: [{key: x, operator: In, values: [a, b, c, d, e, f, g, h, i, j, k, l]}]}]",
        [f"{UNMATCHED}: wants x In a, b, c, d, e, f, g, h, i, j and 2 more, but the node lacks it"],
    ),
    "a label that must not be there": (
        "",
        "{}",
        AFFINITY % "[{matchExpressions: [{key: disk, operator: DoesNotExist}]}]",
        [f'{UNMATCHED}: wants no label disk, but the node has "hdd"'],
    ),
    "a label that must be there": (
        "",
        "{}",
        AFFINITY % "[{matchExpressions: [{key: x, operator: Exists}]}]",
        [f"{UNMATCHED}: wants label x, but the node lacks it"],
    ),
    "a host port": (
        "",
        "{}",
        "{containers: [{name: a, ports: [{hostPort: 80}]}]}",
        ["node(s) didn't have free ports for the requested pod ports: 80/TCP is taken by default/here"],
    ),
    "a spread constraint whose label the node lacks": (
        "",
        "{}",
        SPREAD % "rack",
        [
            "node(s) didn't match pod topology spread constraints (missing required label): label the node with rack",
        ],
    ),
    "pods to be near to": (
        "",
        "{}",
        POD_AFFINITY % ("podAffinity", "zone", "cache"),
        ["node(s) didn't match pod affinity rules: no pod in zone=a matches the pod's affinity"],
    ),
    "pods to be near to where the node has no domain": (
        "",
        "{}",
        POD_AFFINITY % ("podAffinity", "rack", "web"),
        ["node(s) didn't match pod affinity rules: label the node with rack"],
    ),
    "pods to stay away from": (
        "",
        "{}",
        POD_AFFINITY % ("podAntiAffinity", "zone", "web"),
        ["node(s) didn't match pod anti-affinity rules: the pod has anti-affinity to default/here"],
    ),
    "pods that want it to stay away": (
        "",
        "{app: noisy}",
        "{}",
        [
            "node(s) didn't satisfy existing pods anti-affinity rules: "
            "the pod violates the anti-affinity of default/here"
        ],
    ),
}


@pytest.mark.parametrize(("node", "labels", "spec", "lines"), CASES.values(), ids=CASES.keys())
def test_a_rejection_is_explained(tmp_path: Path, node: str, labels: str, spec: str, lines: list[str]) -> None:
    if "containers" not in spec:
        spec = "{containers: [{name: a}], " + spec[1:]
    assert near_misses(tmp_path, NODE % (node, labels, spec)) == [NearMiss("n1", tuple(lines))]


def explain(tmp_path: Path, text: str) -> PodReport:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    setup = wiring.build_setup()
    (report,) = explain_pods(read_recording([str(path)]), [], setup.profiles, setup.profiles, wiring.make_runtime())
    return report


def near_misses(tmp_path: Path, text: str) -> list[NearMiss]:
    report = explain(tmp_path, text)
    return find_near_misses(report.explanation, report.snapshot, 5)


def test_a_full_node_is_explained(tmp_path: Path) -> None:
    text = (NODE % ("", "{}", "{containers: [{name: a}]}")).replace("pods: 3", "pods: 1")
    assert near_misses(tmp_path, text) == [NearMiss("n1", ("Too many pods: the node has 1, and allows at most 1",))]


def test_a_node_may_be_overcommitted(tmp_path: Path) -> None:
    text = (NODE % ("", "{}", requests(cpu="1"))).replace("cpu: 4,", "cpu: 3,")
    details = "wants 1000m, but the node is overcommitted by 500m (1500m short)"
    assert near_misses(tmp_path, text) == [NearMiss("n1", (f"Insufficient cpu: {details}",))]


@pytest.mark.parametrize(
    ("taint", "condition", "details"),
    [
        (
            "not-ready",
            "{type: Ready, status: 'False', reason: KubeletNotReady, message: \"no network:\\n  no CNI\"}",
            "repair the node, whose condition Ready is False (KubeletNotReady: no network: no CNI)",
        ),
        ("unreachable", "{type: Ready, status: Unknown}", "repair the node, whose condition Ready is Unknown"),
        (
            "disk-pressure",
            "{type: DiskPressure, status: 'True', message: full}",
            "repair the node, whose condition DiskPressure is True (full)",
        ),
        ("not-ready", "{type: Ready, status: 'True', message: kubelet is ready}", ""),
        ("not-ready", "{type: DiskPressure, status: 'True'}", ""),
    ],
)
def test_a_taint_for_a_condition_is_explained_by_the_condition(
    tmp_path: Path, taint: str, condition: str, details: str
) -> None:
    taint_text = f"node.kubernetes.io/{taint}:NoSchedule"
    spec = f"taints: [{{key: node.kubernetes.io/{taint}, effect: NoSchedule}}]"
    text = NODE % (spec, "{}", "{containers: [{name: a}]}")
    text = text.replace("status: {allocatable", f"status: {{conditions: [{condition}], allocatable")
    want = f"{taint_text}; {details}" if details else f"tolerate {taint_text}, or remove it from the node"
    assert near_misses(tmp_path, text) == [NearMiss("n1", (f"node(s) had untolerated taint(s): {want}",))]


def test_a_volume_in_another_zone_is_explained(tmp_path: Path) -> None:
    volume = """\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {accessModes: [ReadWriteOnce], volumeName: pv1, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv1}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: example.com, volumeHandle: a}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}
"""
    spec = "{containers: [{name: a}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}"
    reason = "node(s) didn't match PersistentVolume's node affinity"
    details = 'volume pv1 of claim default/data wants zone=b, but the node has "a"'
    assert near_misses(tmp_path, NODE % ("", "{}", spec) + volume) == [NearMiss("n1", (f"{reason}: {details}",))]


@pytest.mark.parametrize(
    ("slice_nodes", "details"),
    [
        ("nodeName: n2", ": no ResourceSlice has devices of the node; check that its device driver runs"),
        ("nodeName: n1", ""),
        ("allNodes: true", ""),
    ],
)
def test_a_node_without_devices_is_explained(tmp_path: Path, slice_nodes: str, details: str) -> None:
    objects = f"""\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: gpu}}
spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu, count: 2}}}}]}}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: s}}
spec:
  {slice_nodes}
  driver: example.com
  pool: {{name: p, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: d}}]
"""
    spec = "{containers: [{name: a, resources: {claims: [{name: g}]}}],"
    spec += " resourceClaims: [{name: g, resourceClaimName: gpu}]}"
    text = NODE % ("", "{}", spec) + objects
    assert near_misses(tmp_path, text) == [NearMiss("n1", (f"cannot allocate all claims{details}",))]


def test_a_skew_is_explained(tmp_path: Path) -> None:
    other = (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n2, labels: {zone: b}}\nstatus: {allocatable: {pods: 0}}\n---\n"
    )
    spec = SPREAD.replace("{topo", "{containers: [{name: a}], topo") % "zone"
    assert near_misses(tmp_path, other + NODE % ("", "{app: web}", spec)) == [
        NearMiss(
            "n1",
            ("node(s) didn't match pod topology spread constraints: maxSkew 1 over zone would be exceeded in a",),
        ),
        NearMiss("n2", ("Too many pods: the node has 0, and allows at most 0",)),
    ]


def test_the_nearest_nodes_come_first_and_equal_nodes_are_shown_once(tmp_path: Path) -> None:
    nodes = "".join(
        f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, "
        f"status: {{allocatable: {{cpu: {cpu}, memory: 1Gi, pods: 9}}}}}}\n---\n"
        for name, cpu in [("far", "100m"), ("near", "900m"), ("middle", "500m"), ("middle-2", "500m")]
    )
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: new}}\nspec: {requests(cpu='1')}\n"
    cpu, total = "Insufficient cpu: wants 1000m, but only", "; even the empty node has only {0}"
    assert near_misses(tmp_path, nodes + pod) == [
        NearMiss("near", (f"{cpu} 900m are free (100m short){total.format('900m')}",)),
        NearMiss(
            "middle",
            (f"{cpu} 500m are free (500m short){total.format('500m')}",),
            equal_count=1,
        ),
        NearMiss("far", (f"{cpu} 100m are free (900m short){total.format('100m')}",)),
    ]


def make_small_nodes(count: int) -> str:
    """Nodes with half of the CPU that the pod `new` wants."""
    node = "{apiVersion: v1, kind: Node, metadata: {name: n%02d}, status: {allocatable: {cpu: 500m, pods: 9}}}\n---\n"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: new}}\nspec: {requests(cpu='1')}\n"
    return "".join(node % number for number in range(count)) + pod


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "n00: "), (2, "n00 and 1 other: "), (40, "n00 and 39 others: "), (41, "n00 and at least 39 others: ")],
)
def test_a_near_miss_has_the_number_of_equal_nodes(tmp_path: Path, count: int, text: str) -> None:
    """Forty nodes are examined, since details such as the conflicting pods take long."""
    (near_miss,) = near_misses(tmp_path, make_small_nodes(count))
    assert next(near_miss.format_lines("")).startswith(f"{text}Insufficient cpu")


@pytest.mark.parametrize(
    ("count", "heading"),
    [
        (40, "  Near misses, and what they lack\n"),
        (41, "  Near misses among the 40 nearest nodes, and what they lack\n"),
    ],
)
def test_the_text_says_when_not_all_nodes_are_examined(tmp_path: Path, count: int, heading: str) -> None:
    assert heading in explain(tmp_path, make_small_nodes(count)).to_text()
