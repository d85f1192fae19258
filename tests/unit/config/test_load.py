"""Loading of a configuration: errors with their messages, defaults, and positions of syntax errors."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.config.defaults import make_default_configuration
from extender.config.documents import dump_yaml
from extender.config.errors import ConfigError, FieldError
from extender.config.load import from_builtins, load_configuration
from extender.config.model import API_VERSION, KIND, Extender, ManagedResource, TLSConfig
from extender.config.render import build_document

ROOT = Path(__file__).parents[3]
CASES = yaml.safe_load((ROOT / "tests/cases/config.yaml").read_text())
HEAD = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


def body(**fields: object) -> dict[str, object]:
    return {"apiVersion": API_VERSION, "kind": KIND, **fields}


def load_errors(data: bytes) -> tuple[FieldError, ...]:
    with pytest.raises(ConfigError) as caught:
        load_configuration(data, "file.yaml")
    return caught.value.errors


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("encoding", ["YAML", "JSON", "builtins"])
def test_all_errors_are_reported(case: Any, encoding: Any) -> None:
    document = body(**case["document"])
    try:
        if encoding == "builtins":
            from_builtins(document, "f")
        else:
            load_configuration((yaml.safe_dump(document) if encoding == "YAML" else json.dumps(document)).encode(), "f")
        errors = []
    except ConfigError as exc:
        errors = [str(error) for error in exc.errors]
    assert errors == case["errors"]


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
def test_an_absent_field_has_its_default(attribute: str, value: Any) -> None:
    actual: object = from_builtins(body(), "f")
    for name in attribute.split("."):
        actual = getattr(actual, name)
    assert actual == value


def test_zero_and_empty_values_get_the_default_as_in_kube_scheduler() -> None:
    document = body(
        leaderElection={"leaseDuration": "0s", "renewDeadline": "0", "retryPeriod": "0s", "resourceLock": ""},
        clientConnection={"qps": 0, "burst": 0, "contentType": ""},
    )
    assert from_builtins(document, "f") == make_default_configuration()


def test_an_empty_document_is_the_default_configuration() -> None:
    assert load_configuration(HEAD.encode(), "f") == make_default_configuration()


def test_a_single_profile_is_the_default_scheduler() -> None:
    assert [profile.scheduler_name for profile in from_builtins(body(profiles=[{}]), "f").profiles] == [
        "default-scheduler"
    ]


@pytest.mark.parametrize(
    ("fields", "contention_profiling"),
    [
        pytest.param({"enableProfiling": False}, False, id="off without profiling"),
        pytest.param({"enableProfiling": True}, True, id="on with profiling"),
        pytest.param({"enableContentionProfiling": False}, False, id="explicitly off"),
        pytest.param({"enableProfiling": False, "enableContentionProfiling": True}, True, id="explicitly on"),
    ],
)
def test_contention_profiling_follows_profiling(fields: Any, contention_profiling: bool) -> None:
    assert from_builtins(body(**fields), "f").enable_contention_profiling is contention_profiling


def test_all_fields_of_an_extender_are_loaded() -> None:
    text = f"""{HEAD}
extenders:
- urlPrefix: https://e
  filterVerb: f
  preemptVerb: pre
  prioritizeVerb: pri
  weight: 9000000000
  bindVerb: b
  enableHTTPS: true
  tlsConfig: {{serverName: s, certFile: c, keyFile: k, caFile: ca, certData: YQ==, keyData: Yg==,
              caData: Yw==}}
  httpTimeout: 1m30s
  nodeCacheCapable: true
  managedResources: [{{name: example.com/a, ignoredByScheduler: true}}]
  ignorable: true
- tlsConfig: {{insecure: true}}
"""
    tls = TLSConfig(False, "s", "c", "k", "ca", b"a", b"b", b"c")
    managed = (ManagedResource("example.com/a", True),)
    assert load_configuration(text.encode(), "f").extenders == (
        Extender("https://e", "f", "pre", "pri", 9000000000, "b", True, tls, 90.0, True, managed, True),
        Extender(tls_config=TLSConfig(insecure=True)),
    )


def test_an_extender_without_a_timeout_has_five_seconds() -> None:
    assert Extender().http_timeout == 5.0
    assert Extender(http_timeout=0.0).http_timeout == 5.0
    assert Extender(http_timeout=0.1).http_timeout == 0.1


def test_plugin_arguments_are_loaded_with_their_path() -> None:
    args = {"ignorePreferredTermsOfExistingPods": True}
    config = [{"name": "NodeAffinity"}, {"name": "InterPodAffinity", "args": args}]
    (profile,) = from_builtins(body(profiles=[{"pluginConfig": config}]), "f").profiles
    assert profile.plugin_config == {"NodeAffinity": {}, "InterPodAffinity": args}
    assert profile.args_paths["InterPodAffinity"] == "profiles[0].pluginConfig[1].args"


DOCUMENT_ERRORS = {
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
    "a duplicate key in YAML has its line": (
        f"{HEAD}leaderElection:\n  retryPeriod: 1s\n  retryPeriod: 2s\n".encode(),
        'leaderElection.retryPeriod: duplicate field "retryPeriod" (line 5)',
    ),
    "a duplicate key in JSON has its path": (
        json.dumps(body(parallelism=1))[:-1].encode() + b', "parallelism": 2}',
        'parallelism: duplicate field "parallelism"',
    ),
    "a control character is rejected": (
        b"a: \x01",
        'file.yaml: unacceptable character #x0001: special characters are not allowed in "<unicode string>", '
        "position 3",
    ),
    "deeply nested YAML is rejected": (
        b"[" * 5000,
        "file.yaml: line 1, column 101: nested too deeply; want at most 100 levels",
    ),
    "101 levels of YAML are rejected": (
        b"[" * 101 + b"]" * 101,
        "file.yaml: line 1, column 101: nested too deeply; want at most 100 levels",
    ),
    "deeply nested JSON is rejected": (
        b'{"a":' * 100_000,
        "file.yaml: nested too deeply; want at most 100 levels",
    ),
    "101 levels of JSON are rejected": (
        b'{"a":' * 101 + b"1" + b"}" * 101,
        "nested too deeply; want at most 100 levels",
    ),
    "a list that contains itself is rejected": (b"&a [*a]", "nested too deeply; want at most 100 levels"),
    "a second document is rejected": (
        f"{HEAD}---\n{HEAD}".encode(),
        "file.yaml: line 3, column 1: a second document; want one document per file",
    ),
    "a field name that is not a string is rejected": (
        f"{HEAD}5: x".encode(),
        "field names have to be strings, got the integer 5",
    ),
    "an invalid date is rejected": (
        b"a: !!timestamp 2020-13-01",
        "file.yaml: month must be in 1..12" + (", not 13" if sys.version_info >= (3, 14) else ""),
    ),
    "kind is a string": (b"kind: 5", "kind: expected a string, got the integer 5"),
    "the kind of arguments is a string": (
        f"{HEAD}profiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{kind: 5}}}}]}}]".encode(),
        "profiles[0].pluginConfig[0].args: kind and apiVersion have to be strings",
    ),
    "a value without a JSON type is rejected": (
        f"{HEAD}clientConnection: {{qps: .inf}}".encode(),
        "clientConnection.qps: expected a JSON value, got the number inf",
    ),
}


@pytest.mark.parametrize(("data", "message"), DOCUMENT_ERRORS.values(), ids=DOCUMENT_ERRORS)
def test_a_document_error_has_its_position(data: Any, message: str) -> None:
    assert [str(error) for error in load_errors(data)] == [message]


def test_an_older_version_hides_no_other_error() -> None:
    data = f"apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: {KIND}\nparallelism: 0\nhealthzBindAddress: x\n"
    assert [error.path for error in load_errors(data.encode())] == ["", "healthzBindAddress", "parallelism"]


def test_json_with_yaml_syntax_is_accepted() -> None:
    assert (
        load_configuration(f"{{kind: {KIND}, apiVersion: {API_VERSION},}}".encode(), "f")
        == make_default_configuration()
    )


@pytest.mark.parametrize(
    ("text", "parallelism"),
    [("16.0", 16), ("0x10", 16), ("020", 16), ("0o20", 16), ("1_6", 16), ("1.6e1", 16)],
    ids=["no fraction", "hexadecimal", "octal", "new octal", "grouped", "an exponent"],
)
def test_numbers_are_parsed_as_in_go(text: str, parallelism: int) -> None:
    assert load_configuration(f"{HEAD}parallelism: {text}\n".encode(), "f").parallelism == parallelism


@pytest.mark.parametrize("text", ["2020-01-01", "1:30"], ids=["a date", "sixties"])
def test_text_that_go_does_not_resolve_stays_text(text: str) -> None:
    assert (
        load_configuration(
            f"{HEAD}leaderElection: {{resourceName: {text}}}\n".encode(), "f"
        ).leader_election.resource_name
        == text
    )


def test_excessive_aliasing_is_rejected() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 8)]
    assert [str(error) for error in load_errors("\n".join(lines).encode())] == [
        "file.yaml: line 4, column 10: document contains excessive aliasing"
    ]


FILES = sorted(set((ROOT / "scheduler-config").rglob("*.yaml")) - {ROOT / "scheduler-config/policy.yaml"})


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_shipped_configurations_load(path: Path) -> None:
    configuration = load_configuration(path.read_bytes(), path.name)
    assert load_configuration(dump_yaml(build_document(configuration)).encode(), "rendered") == configuration


def test_the_shipped_kube_scheduler_configuration_calls_the_extender() -> None:
    configuration = load_configuration((ROOT / "scheduler-config/extender.yaml").read_bytes(), "extender.yaml")
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


def test_the_shipped_standalone_configuration_is_the_default() -> None:
    assert (
        load_configuration((ROOT / "scheduler-config/standalone.yaml").read_bytes(), "f")
        == make_default_configuration()
    )
