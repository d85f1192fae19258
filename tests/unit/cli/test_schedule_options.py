"""The options of `extender schedule`: defaults and precedence as in kube-scheduler, and errors of flags."""

from collections.abc import Callable
from pathlib import Path

import pytest

from extender.app.options import ScheduleOptions
from extender.cli.pflag import ParsedFlags, parse
from extender.cli.schedule_flags import FLAGS
from extender.cli.schedule_options import list_flag_warnings, make_schedule_options
from extender.config.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def parse_words(*words: str) -> ParsedFlags:
    return parse(words, FLAGS)


def options(*words: str) -> ScheduleOptions:
    return make_schedule_options(parse_words(*words))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that writes a configuration and returns its path."""

    def write(text: str) -> str:
        path = tmp_path / "scheduler.yaml"
        path.write_text(HEAD + text)
        return str(path)

    return write


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    result = options()
    configuration = result.setup.configuration
    assert (configuration.client_connection.qps, configuration.client_connection.burst) == (50.0, 100)
    assert configuration.leader_election.leader_elect is True
    assert result.serving is not None
    assert (result.serving.address, result.serving.port) == ("0.0.0.0", 10259)  # noqa: S104
    assert result.authorization.always_allowed_paths == ("/healthz", "/readyz", "/livez")
    assert (result.max_in_unschedulable_pods_seconds, result.logs.format, result.logs.v) == (300.0, "text", 0)
    assert result.flags["leader-elect-lease-duration"] == "15s"
    assert result.flags["authorization-always-allow-paths"] == "[/healthz,/readyz,/livez]"


def test_without_a_configuration_file_the_deprecated_flags_apply() -> None:
    result = options(
        "--kubeconfig=k", "--kube-api-qps=5", "--kube-api-burst=7", "--profiling=false", "--master=http://m"
    )
    connection = result.setup.configuration.client_connection
    assert (connection.kubeconfig, connection.qps, connection.burst) == ("k", 5.0, 7)
    assert result.setup.configuration.enable_profiling is False
    assert (result.credential_source.kubeconfig, result.credential_source.master) == ("k", "http://m")


def test_a_file_overrides_deprecated_flags_and_election_flags_override_the_file(file: Callable[[str], str]) -> None:
    config = file("clientConnection: {kubeconfig: f, qps: 9}\nleaderElection: {resourceName: ours}\n")
    result = options(
        f"--config={config}", "--kubeconfig=k", "--kube-api-qps=5", "--leader-elect=false",
        "--pod-max-in-unschedulable-pods-duration=1m",
    )  # fmt: skip
    configuration = result.setup.configuration
    assert (configuration.client_connection.kubeconfig, configuration.client_connection.qps) == ("f", 9.0)
    assert configuration.leader_election.leader_elect is False
    assert configuration.leader_election.resource_name == "ours"
    assert result.max_in_unschedulable_pods_seconds == 60.0


def test_warnings_about_a_file_are_logged_and_not_printed(
    file: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    coscheduling = """
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
  pluginConfig: [{name: Coscheduling, args: {permitWaitingTimeSeconds: 5}}]
"""
    assert options(f"--config={file(coscheduling)}").warnings == (
        "Coscheduling: permitWaitingTimeSeconds has no effect: "
        "the members of a group are placed together, so no member waits for others on a node",
    )
    assert capsys.readouterr().err == ""


def test_port_0_serves_nothing() -> None:
    assert options("--secure-port=0").serving is None


def test_the_pages_are_off_by_default() -> None:
    assert options().serves_ui is False
    assert options("--ui").serves_ui is True
    words = ("--ui", "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/ui/*")
    assert options(*words).serves_ui is True


def test_feature_gates_are_passed_to_the_plugins() -> None:
    assert "SchedulerPopFromBackoffQ" not in options("--feature-gates=SchedulerPopFromBackoffQ=false").setup.gates


def test_deprecated_flags_and_flags_without_effect_are_accepted_with_a_warning() -> None:
    assert list(list_flag_warnings(parse_words("--kubeconfig=k", "--disable-http2-serving", "--v=2"))) == [
        "Flag --disable-http2-serving has no effect: the service speaks HTTP/1.1",
        "Flag --kubeconfig has been deprecated, it is ignored if --config is given",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("serve", '"extender schedule" does not take any arguments, got ["serve"]'),
        ("--secure-port=70000", "--secure-port: 70000 must be between 0 and 65535, inclusive; 0 serves nothing"),
        (
            "--tls-cert-file=x",
            "--tls-cert-file: want --tls-cert-file and --tls-private-key-file together, or neither",
        ),
        (
            "--authorization-always-allow-paths=/a/*/b",
            '--authorization-always-allow-paths: only trailing * allowed in "/a/*/b"',
        ),
        (
            "--show-hidden-metrics-for-version=1.30",
            '--show-hidden-metrics-for-version: "1.30" must be omitted or have the value 1.36',
        ),
        ("--ui --secure-port=0", "--ui: the pages need a port; leave out --secure-port=0"),
        (
            "--ui --authorization-always-allow-paths=/ui*",
            "--authorization-always-allow-paths: every client of 0.0.0.0 could read the pages; "
            'leave out "/ui*" or --ui',
        ),
        ("--emulated-version=1.30", "--emulated-version: 1.30 cannot be emulated; want 1.36 or 1.37"),
        ("--emulated-version=wardle=1.2", "--emulated-version: component not registered: wardle; want kube=1.37"),
        ("--logging-format=xml", '--logging-format: unsupported log format "xml"; want text or json'),
        ("--vmodule=a=1 --logging-format=json", "--vmodule: only supported for text log format"),
        ("--vmodule=a", '--vmodule: "a" is not of the form pattern=N'),
        ("--log-flush-frequency=0s", "--log-flush-frequency: must be greater than zero"),
        ("--log-json-split-stream", "--log-json-split-stream: feature LoggingAlphaOptions is disabled"),
        (
            "--leader-elect-lease-duration=5s",
            'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        ),
    ],
)
def test_an_invalid_flag_is_an_error(words: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options(*words.split())
    assert list(map(str, caught.value.errors)) == [message]
