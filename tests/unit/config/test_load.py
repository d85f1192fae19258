"""Loading: what is refused, with every message; what is filled in; where faults of the text are."""

import json
from pathlib import Path

import pytest
import yaml

from extender.config.defaults import default_configuration
from extender.config.faults import ConfigError, Fault
from extender.config.load import from_builtins, load
from extender.config.model import API_VERSION, KIND, Extender, ManagedResource, TLSConfig
from extender.config.render import render

ROOT = Path(__file__).parents[3]
CASES = yaml.safe_load((ROOT / "tests/cases/config.yaml").read_text())
HEAD = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


def body(**fields: object) -> dict[str, object]:
    return {"apiVersion": API_VERSION, "kind": KIND, **fields}


def faults_of(data: bytes) -> tuple[Fault, ...]:
    with pytest.raises(ConfigError) as caught:
        load(data, "file.yaml")
    return caught.value.faults


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("form", ["YAML", "JSON", "builtins"])
def test_every_fault_is_reported(case, form):
    document = body(**case["document"])
    try:
        if form == "builtins":
            from_builtins(document, "f")
        else:
            load((yaml.safe_dump(document) if form == "YAML" else json.dumps(document)).encode(), "f")
        found = []
    except ConfigError as exc:
        found = [str(fault) for fault in exc.faults]
    assert found == case["faults"]


DEFAULTS = {
    "parallelism": ("parallelism", 16),
    "percentageOfNodesToScore": ("percentage_of_nodes_to_score", 0),
    "podInitialBackoffSeconds": ("pod_initial_backoff_seconds", 1),
    "podMaxBackoffSeconds": ("pod_max_backoff_seconds", 10),
    "enableProfiling": ("enable_profiling", True),
    "enableContentionProfiling": ("enable_contention_profiling", True),
    "delayCacheUntilActive": ("delay_cache_until_active", False),
    "extenders": ("extenders", ()),
    "leaderElection.leaderElect": ("leader_election.leader_elect", True),
    "leaderElection.leaseDuration": ("leader_election.lease_duration", 15.0),
    "leaderElection.renewDeadline": ("leader_election.renew_deadline", 10.0),
    "leaderElection.retryPeriod": ("leader_election.retry_period", 2.0),
    "leaderElection.resourceLock": ("leader_election.resource_lock", "leases"),
    "leaderElection.resourceName": ("leader_election.resource_name", "kube-scheduler"),
    "leaderElection.resourceNamespace": ("leader_election.resource_namespace", "kube-system"),
    "clientConnection.kubeconfig": ("client_connection.kubeconfig", ""),
    "clientConnection.acceptContentTypes": ("client_connection.accept_content_types", ""),
    "clientConnection.contentType": ("client_connection.content_type", "application/vnd.kubernetes.protobuf"),
    "clientConnection.qps": ("client_connection.qps", 50.0),
    "clientConnection.burst": ("client_connection.burst", 100),
}


@pytest.mark.parametrize(("attribute", "value"), DEFAULTS.values(), ids=DEFAULTS)
def test_an_absent_field_has_its_default(attribute, value):
    found: object = from_builtins(body(), "f")
    for name in attribute.split("."):
        found = getattr(found, name)
    assert found == value


def test_zero_and_empty_count_as_absent_where_kube_scheduler_says_so():
    written = body(
        leaderElection={"leaseDuration": "0s", "renewDeadline": "0", "retryPeriod": "0s", "resourceLock": ""},
        clientConnection={"qps": 0, "burst": 0, "contentType": ""},
    )
    assert from_builtins(written, "f") == default_configuration()


def test_an_empty_document_is_the_default_configuration():
    assert load(HEAD.encode(), "f") == default_configuration()


def test_a_single_profile_is_the_default_scheduler():
    assert [profile.scheduler_name for profile in from_builtins(body(profiles=[{}]), "f").profiles] == [
        "default-scheduler"
    ]


@pytest.mark.parametrize(
    ("written", "contention"),
    [
        pytest.param({"enableProfiling": False}, False, id="off without profiling"),
        pytest.param({"enableProfiling": True}, True, id="on with profiling"),
        pytest.param({"enableContentionProfiling": False}, False, id="off when said so"),
        pytest.param({"enableProfiling": False, "enableContentionProfiling": True}, True, id="on when said so"),
    ],
)
def test_contention_profiling_follows_profiling(written, contention):
    assert from_builtins(body(**written), "f").enable_contention_profiling is contention


def test_an_extender_is_read_whole():
    text = f"""{HEAD}
extenders:
- urlPrefix: https://e
  filterVerb: f
  preemptVerb: pre
  prioritizeVerb: pri
  weight: 9000000000
  bindVerb: b
  enableHTTPS: true
  tlsConfig: {{insecure: true, serverName: s, certFile: c, keyFile: k, caFile: ca, certData: YQ==, keyData: Yg==,
              caData: Yw==}}
  httpTimeout: 1m30s
  nodeCacheCapable: true
  managedResources: [{{name: example.com/a, ignoredByScheduler: true}}]
  ignorable: true
"""
    tls = TLSConfig(True, "s", "c", "k", "ca", b"a", b"b", b"c")
    managed = (ManagedResource("example.com/a", True),)
    assert load(text.encode(), "f").extenders == (
        Extender("https://e", "f", "pre", "pri", 9000000000, "b", True, tls, 90.0, True, managed, True),
    )


def test_an_extender_without_a_timeout_has_five_seconds():
    assert Extender().effective_timeout == 5.0
    assert Extender(http_timeout=0.1).effective_timeout == 0.1


def test_arguments_are_kept_as_written_with_their_place():
    args = {"ignorePreferredTermsOfExistingPods": True}
    config = [{"name": "NodeAffinity"}, {"name": "InterPodAffinity", "args": args}]
    (profile,) = from_builtins(body(profiles=[{"pluginConfig": config}]), "f").profiles
    assert profile.plugin_config == {"NodeAffinity": {}, "InterPodAffinity": args}
    assert profile.args_paths["InterPodAffinity"] == "profiles[0].pluginConfig[1].args"


TEXT_FAULTS = {
    "broken YAML has a line and a column": (
        b"a: b\nc: d: e\n",
        "file.yaml: line 2, column 5: mapping values are not allowed here",
    ),
    "broken JSON has a line and a column": (
        b'{"a": 1,\n\t"b" 2}',
        "file.yaml: line 2, column 6: Expecting ':' delimiter",
    ),
    "text that is not UTF-8 has a line": (b"a: b\nc: \xff\n", "file.yaml: line 2: not UTF-8"),
    "a list is not a configuration": (b"[1]", "file.yaml: expected an object, got a list"),
    "an empty file has no kind": (
        b"",
        "Object 'Kind' is missing in 'file.yaml': write kind: KubeSchedulerConfiguration",
    ),
    "a configuration needs a version": (
        b"kind: KubeSchedulerConfiguration",
        "Object 'apiVersion' is missing in 'file.yaml': write apiVersion: kubescheduler.config.k8s.io/v1",
    ),
    "another kind cannot be decoded": (
        b"{apiVersion: v1, kind: Pod}",
        "couldn't decode as KubeSchedulerConfiguration, got /v1, Kind=Pod: "
        "write apiVersion: kubescheduler.config.k8s.io/v1 and kind: KubeSchedulerConfiguration",
    ),
    "an older version cannot be decoded": (
        b"{apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: KubeSchedulerConfiguration}",
        "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1beta3, "
        "Kind=KubeSchedulerConfiguration: "
        "write apiVersion: kubescheduler.config.k8s.io/v1 and kind: KubeSchedulerConfiguration",
    ),
    "a key that comes twice in YAML has its line": (
        f"{HEAD}leaderElection:\n  retryPeriod: 1s\n  retryPeriod: 2s\n".encode(),
        'leaderElection.retryPeriod: duplicate field "retryPeriod" (line 5)',
    ),
    "a key that comes twice in JSON has its path": (
        json.dumps(body(parallelism=1))[:-1].encode() + b', "parallelism": 2}',
        'parallelism: duplicate field "parallelism"',
    ),
    "a control character is refused": (
        b"a: \x01",
        'file.yaml: unacceptable character #x0001: special characters are not allowed in "<unicode string>", '
        "position 3",
    ),
    "YAML nested without end is refused": (
        b"[" * 5000,
        "file.yaml: line 1, column 101: nested too deeply; want at most 100 levels",
    ),
    "101 levels of YAML are refused": (
        b"[" * 101 + b"]" * 101,
        "file.yaml: line 1, column 101: nested too deeply; want at most 100 levels",
    ),
    "JSON nested without end is refused": (
        b'{"a":' * 100_000,
        "file.yaml: nested too deeply; want at most 100 levels",
    ),
    "101 levels of JSON are refused": (
        b'{"a":' * 101 + b"1" + b"}" * 101,
        "nested too deeply; want at most 100 levels",
    ),
    "a list that contains itself is refused": (b"&a [*a]", "nested too deeply; want at most 100 levels"),
    "a second document is refused": (
        f"{HEAD}---\n{HEAD}".encode(),
        "file.yaml: line 3, column 1: a second document; want one a file, profiles being a list within it",
    ),
    "a name that is no string is refused": (
        f"{HEAD}5: x".encode(),
        "field names have to be strings, got the integer 5",
    ),
    "a date that is none is refused": (b"a: !!timestamp 2020-13-01", "file.yaml: month must be in 1..12"),
    "kind is a string": (b"kind: 5", "kind: expected a string, got the integer 5"),
    "the kind of arguments is a string": (
        f"{HEAD}profiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{kind: 5}}}}]}}]".encode(),
        "profiles[0].pluginConfig[0].args: kind and apiVersion have to be strings",
    ),
    "what JSON cannot say is refused": (
        f"{HEAD}clientConnection: {{qps: .inf}}".encode(),
        "clientConnection.qps: expected a value that JSON has, got the number inf",
    ),
}


@pytest.mark.parametrize(("data", "message"), TEXT_FAULTS.values(), ids=TEXT_FAULTS)
def test_a_fault_of_the_text_says_where(data, message):
    assert [str(fault) for fault in faults_of(data)] == [message]


def test_json_may_be_written_loosely_as_yaml_allows():
    assert load(f"{{kind: {KIND}, apiVersion: {API_VERSION},}}".encode(), "f") == default_configuration()


@pytest.mark.parametrize(
    ("text", "parallelism"),
    [("16.0", 16), ("0x10", 16), ("020", 16), ("0o20", 16), ("1_6", 16), ("1.6e1", 16)],
    ids=["no fraction", "hexadecimal", "octal", "new octal", "grouped", "an exponent"],
)
def test_a_number_is_what_go_takes_it_for(text, parallelism):
    assert load(f"{HEAD}parallelism: {text}\n".encode(), "f").parallelism == parallelism


@pytest.mark.parametrize("text", ["2020-01-01", "1:30"], ids=["a date", "sixties"])
def test_what_go_takes_for_text_stays_text(text):
    assert load(f"{HEAD}leaderElection: {{resourceName: {text}}}\n".encode(), "f").leader_election.resource_name == text


def test_aliases_that_unfold_without_end_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 8)]
    assert [str(fault) for fault in faults_of("\n".join(lines).encode())] == ["document contains excessive aliasing"]


FILES = sorted(set((ROOT / "scheduler-config").rglob("*.yaml")) - {ROOT / "scheduler-config/policy.yaml"})


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_configurations_we_ship_load(path):
    configuration = load(path.read_bytes(), path.name)
    assert load(render(configuration).encode(), "rendered") == configuration


def test_the_configuration_we_ship_for_kube_scheduler_calls_our_extender():
    configuration = load((ROOT / "scheduler-config/extender.yaml").read_bytes(), "extender.yaml")
    assert configuration.extenders == (
        Extender(
            url_prefix="http://127.0.0.1:8888",
            filter_verb="filter",
            preempt_verb="preempt",
            prioritize_verb="prioritize",
            weight=1,
            bind_verb="bind",
            http_timeout=5.0,
            node_cache_capable=True,
        ),
    )


def test_the_standalone_configuration_we_ship_is_the_default_one():
    assert load((ROOT / "scheduler-config/standalone.yaml").read_bytes(), "f") == default_configuration()
