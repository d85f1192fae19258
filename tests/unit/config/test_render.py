"""Rendering of a configuration, and loading it back.

Source: cmd/kube-scheduler/app/options/configfile.go, LogOrWriteConfig (1.36).
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.config.defaults import make_default_configuration
from extender.config.documents import dump_yaml, normalize, parse_document
from extender.config.legacy_policy.algorithm_providers import get_provider
from extender.config.legacy_policy.convert import convert_policy
from extender.config.legacy_policy.policy_document import Policy
from extender.config.load import load_configuration
from extender.config.model import (
    ClientConnection,
    Configuration,
    Extender,
    LeaderElection,
    ManagedResource,
    Plugin,
    Plugins,
    PluginSet,
    Profile,
    TLSConfig,
)
from extender.config.releases import RELEASE_1_36
from extender.config.render import build_document, render_without_defaults

SMALL = Configuration(
    profiles=(
        Profile(
            "s",
            percentage_of_nodes_to_score=30,
            plugins=Plugins(multi_point=PluginSet((Plugin("PrioritySort"),), (Plugin("*"),))),
            plugin_config={"Other": {"size": "1e3"}, "NodeAffinity": {"addedAffinity": None}},
        ),
    ),
    leader_election=LeaderElection(lease_duration=90.0, renew_deadline=1.5),
    client_connection=ClientConnection(qps=0.5),
    enable_contention_profiling=False,
    extenders=(
        Extender(
            "http://e",
            prioritize_verb="p",
            weight=2,
            enable_https=True,
            tls_config=TLSConfig(ca_data=b"a"),
            http_timeout=0.1,
            managed_resources=(ManagedResource("a.b/c"),),
        ),
    ),
    delay_cache_until_active=True,
)
RENDERED = """\
apiVersion: kubescheduler.config.k8s.io/v1
clientConnection:
  acceptContentTypes: ""
  burst: 100
  contentType: application/vnd.kubernetes.protobuf
  kubeconfig: ""
  qps: 0.5
delayCacheUntilActive: true
enableContentionProfiling: false
enableProfiling: true
extenders:
- enableHTTPS: true
  httpTimeout: 100ms
  managedResources:
  - name: a.b/c
  prioritizeVerb: p
  tlsConfig:
    caData: YQ==
  urlPrefix: http://e
  weight: 2
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  leaseDuration: 1m30s
  renewDeadline: 1.5s
  resourceLock: leases
  resourceName: kube-scheduler
  resourceNamespace: kube-system
  retryPeriod: 2s
parallelism: 16
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
profiles:
- percentageOfNodesToScore: 30
  pluginConfig:
  - args:
      addedAffinity: null
    name: NodeAffinity
  - args:
      size: "1e3"
    name: Other
  plugins:
    bind: {}
    filter: {}
    multiPoint:
      disabled:
      - name: '*'
        weight: 0
      enabled:
      - name: PrioritySort
        weight: 0
    permit: {}
    placementGenerate: {}
    placementScore: {}
    postBind: {}
    postFilter: {}
    preBind: {}
    preEnqueue: {}
    preFilter: {}
    preScore: {}
    queueSort: {}
    reserve: {}
    score: {}
  schedulerName: s
"""


def test_a_configuration_is_rendered_as_by_kube_scheduler() -> None:
    assert dump_yaml(build_document(SMALL, release=RELEASE_1_36)) == RENDERED


def test_a_rendered_configuration_loads_back_equal() -> None:
    assert load_configuration(RENDERED.encode(), "f") == SMALL
    assert (
        load_configuration(dump_yaml(build_document(make_default_configuration())).encode(), "f")
        == make_default_configuration()
    )


def test_defaulted_arguments_replace_those_of_the_configuration() -> None:
    args = {"s": {"Other": {"x": 1}, "NodeAffinity": {}}}
    (profile,) = load_configuration(dump_yaml(build_document(SMALL, args)).encode(), "f").profiles
    assert profile.plugin_config == {
        "NodeAffinity": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeAffinityArgs"},
        "Other": {"x": 1},
    }


@pytest.mark.parametrize("name", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_a_converted_policy_rendered_without_defaults_loads_back_equal(name: str) -> None:
    converted = convert_policy(get_provider(name))
    assert load_configuration(render_without_defaults(converted.configuration).encode(), "f") == converted.configuration


def test_a_converted_policy_is_rendered_without_default_values() -> None:
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


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
NAMES = st.text("abcxyzABCXYZ0123456789-./*", min_size=1, max_size=12)
PLUGIN = st.builds(Plugin, NAMES, st.integers(-(2**31), 2**31 - 1))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_is_dumped_and_parsed_back(value: Any) -> None:
    assert parse_document(dump_yaml({"value": value}).encode(), "f") == ({"value": value}, [])
    assert normalize(value) == (value, [])


@given(
    enabled=st.lists(PLUGIN, max_size=4, unique_by=lambda plugin: plugin.name),
    disabled=st.lists(NAMES, max_size=3),
    lease=st.integers(10_000_000_001, 10**14),
    timeout=st.integers(0, 10**12),
    args=st.dictionaries(NAMES.map("Out-of-tree {}".format), st.dictionaries(TEXT, VALUES, max_size=2), max_size=2),
)
def test_any_configuration_is_rendered_and_loaded_back(
    enabled: Any, disabled: Any, lease: Any, timeout: Any, args: Any
) -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaseDuration": f"{lease}ns"},
        "extenders": [{"httpTimeout": f"{timeout}ns"}],
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "enabled": [{"name": plugin.name, "weight": plugin.weight} for plugin in enabled],
                        "disabled": [{"name": name} for name in disabled],
                    }
                },
                "pluginConfig": [{"name": name, "args": args[name]} for name in args],
            }
        ],
    }
    configuration = load_configuration(dump_yaml(document).encode(), "f")
    assert load_configuration(dump_yaml(build_document(configuration)).encode(), "f") == configuration
