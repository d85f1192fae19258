"""Validation of the quantities and operators in an object."""

from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.validation import validate_object

NOT_A_QUANTITY = 'quantity "5gb": want a number with an optional suffix such as m, k, M, Gi'
PODS: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a valid pod": ({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, []),
    "an invalid request": (
        {"containers": [{}, {"resources": {"requests": {"memory": "5gb"}}}]},
        [("spec.containers[1].resources.requests.memory", NOT_A_QUANTITY)],
    ),
    "a negative overhead": (
        {"overhead": {"cpu": "-1"}},
        [("spec.overhead.cpu", 'quantity "-1": want 0 or more')],
    ),
    "an unknown operator of a toleration": (
        {"tolerations": [{"operator": "Like"}]},
        [("spec.tolerations[0].operator", 'unknown operator "Like"; want Equal or Exists')],
    ),
    "unknown operators of a node selector": (
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"operator": "Like"}], "matchFields": [{"operator": "Gt"}]}
                        ]
                    }
                }
            }
        },
        [
            (
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                ".matchExpressions[0].operator",
                'unknown operator "Like"; want one of In, NotIn, Exists, DoesNotExist, Gt, Lt',
            ),
            (
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                ".matchFields[0].operator",
                'unknown operator "Gt"; want one of In, NotIn',
            ),
        ],
    ),
    "an unknown operator of a label selector": (
        {"topologySpreadConstraints": [{"labelSelector": {"matchExpressions": [{"operator": "Gt"}]}}]},
        [
            (
                "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator",
                'unknown operator "Gt"; want one of In, NotIn, Exists, DoesNotExist',
            )
        ],
    ),
}


@pytest.mark.parametrize(("spec", "errors"), PODS.values(), ids=PODS.keys())
def test_a_pod_has_the_errors_of_its_fields(spec: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert list(validate_object(from_builtins({"spec": spec}, Pod))) == errors


def test_errors_are_in_the_order_of_the_fields() -> None:
    node = from_builtins({"status": {"allocatable": {"cpu": "x"}, "capacity": {"cpu": "-1"}}}, Node)
    assert [path for path, _ in validate_object(node)] == ["status.capacity.cpu", "status.allocatable.cpu"]
