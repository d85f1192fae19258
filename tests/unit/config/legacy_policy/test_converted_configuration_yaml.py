"""Rendering of a converted configuration."""

import pytest

from extender.config.legacy_policy.algorithm_providers import get_provider
from extender.config.legacy_policy.convert import convert_policy
from extender.config.legacy_policy.converted_configuration_yaml import render_without_defaults
from extender.config.legacy_policy.policy import Policy
from extender.config.load import load_configuration


@pytest.mark.parametrize("name", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_the_rendered_configuration_loads_back_equal(name: str) -> None:
    converted = convert_policy(get_provider(name))
    assert load_configuration(render_without_defaults(converted.configuration).encode(), "f") == converted.configuration


def test_the_rendered_configuration_has_no_default_values() -> None:
    assert (
        render_without_defaults(convert_policy(Policy(predicates=(), priorities=())).configuration)
        == """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled:
      - name: '*'
      enabled:
      - name: SchedulingGates
      - name: PrioritySort
      - name: NodeUnschedulable
      - name: TaintToleration
      - name: DefaultPreemption
      - name: DefaultBinder
    preScore:
      disabled:
      - name: TaintToleration
    score:
      disabled:
      - name: TaintToleration
  schedulerName: default-scheduler
"""
    )
