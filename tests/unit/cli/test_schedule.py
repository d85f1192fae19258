"""`extender schedule`: flags become options by kube-scheduler's precedence; what is wrong is a line and status 1."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extender.cli.flags import Parsed, parse
from extender.cli.schedule import command
from extender.cli.schedule_flags import FLAGS, GROUPS
from extender.cli.schedule_options import options_of, warnings
from extender.config.faults import ConfigError
from extender.options import ScheduleOptions

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

UPSTREAM = """
allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig authentication-skip-lookup
authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure authorization-always-allow-paths
authorization-kubeconfig authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
bind-address cert-dir client-ca-file config contention-profiling disable-http2-serving disabled-metrics
emulated-version feature-gates help http2-max-streams-per-connection kube-api-burst kube-api-content-type kube-api-qps
kubeconfig leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-resource-lock
leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period log-flush-frequency
log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format master
min-compatibility-version permit-address-sharing permit-port-sharing pod-max-in-unschedulable-pods-duration profiling
requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
requestheader-uid-headers requestheader-username-headers secure-port show-hidden-metrics-for-version tls-cert-file
tls-cipher-suites tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key v version vmodule
write-config-to
"""


def read(*words: str) -> Parsed:
    return parse(words, FLAGS)


def options(*words: str) -> ScheduleOptions:
    return options_of(read(*words))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Writes a configuration and gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "scheduler.yaml"
        path.write_text(HEAD + text)
        return str(path)

    return write


def test_every_flag_of_kube_scheduler_is_there_and_no_other() -> None:
    assert sorted(FLAGS) == UPSTREAM.split()


def test_flags_stand_in_kube_scheduler_s_groups() -> None:
    assert list(GROUPS) == [
        "Misc", "Secure serving", "Authentication", "Authorization", "Deprecated", "Leader election", "Feature gate",
        "Metrics", "Logs", "Global",
    ]  # fmt: skip


def test_defaults_are_kube_scheduler_s() -> None:
    told = options()
    configuration = told.scheduling.configuration
    assert (configuration.client_connection.qps, configuration.client_connection.burst) == (50.0, 100)
    assert configuration.leader_election.leader_elect is True
    assert told.serving is not None
    assert (told.serving.address, told.serving.port) == ("0.0.0.0", 10259)  # noqa: S104
    assert told.authorization.always_allowed == ("/healthz", "/readyz", "/livez")
    assert (told.max_parked, told.logs.form, told.logs.v) == (300.0, "text", 0)
    assert told.flags["leader-elect-lease-duration"] == "15s"
    assert told.flags["authorization-always-allow-paths"] == "[/healthz,/readyz,/livez]"


def test_without_a_file_the_deprecated_flags_hold() -> None:
    told = options("--kubeconfig=k", "--kube-api-qps=5", "--kube-api-burst=7", "--profiling=false", "--master=http://m")
    connection = told.scheduling.configuration.client_connection
    assert (connection.kubeconfig, connection.qps, connection.burst) == ("k", 5.0, 7)
    assert told.scheduling.configuration.enable_profiling is False
    assert (told.place.kubeconfig, told.place.master) == ("k", "http://m")


def test_a_file_wins_over_deprecated_flags_and_election_flags_over_the_file(file: Callable[[str], str]) -> None:
    config = file("clientConnection: {kubeconfig: f, qps: 9}\nleaderElection: {resourceName: ours}\n")
    told = options(
        f"--config={config}", "--kubeconfig=k", "--kube-api-qps=5", "--leader-elect=false",
        "--pod-max-in-unschedulable-pods-duration=1m",
    )  # fmt: skip
    configuration = told.scheduling.configuration
    assert (configuration.client_connection.kubeconfig, configuration.client_connection.qps) == ("f", 9.0)
    assert configuration.leader_election.leader_elect is False
    assert configuration.leader_election.resource_name == "ours"
    assert told.max_parked == 60.0


def test_port_0_serves_nothing() -> None:
    assert options("--secure-port=0").serving is None


def test_gates_reach_the_plugins() -> None:
    assert "SchedulerPopFromBackoffQ" not in options("--feature-gates=SchedulerPopFromBackoffQ=false").scheduling.gates


def test_deprecated_and_idle_flags_are_accepted_with_a_warning() -> None:
    assert list(warnings(read("--kubeconfig=k", "--disable-http2-serving", "--v=2"))) == [
        "Flag --disable-http2-serving changes nothing: the service speaks HTTP/1.1",
        "Flag --kubeconfig has been deprecated, it is ignored if --config is given",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
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
            '--show-hidden-metrics-for-version: "1.30" must be omitted or have the value 1.35',
        ),
        ("--emulated-version=1.30", "--emulated-version: 1.30 cannot be emulated; want 1.36"),
        ("--emulated-version=wardle=1.2", "--emulated-version: component not registered: wardle; want kube=1.36"),
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
def test_a_wrong_flag_is_told(words: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options(*words.split())
    assert list(map(str, caught.value.faults)) == [told]


async def _never(_: ScheduleOptions) -> int:
    raise AssertionError("nothing should start")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--nope", "unknown flag: --nope"),
        ("--config=missing.yaml", "missing.yaml: no such file; check the path, or write - to read standard input"),
        ("--feature-gates=Nope=true", "--feature-gates: unrecognized feature gate: Nope"),
        ("--version=v9", 'invalid argument "v9" for "--version" flag: want --version or --version=raw'),
    ],
)
def test_bad_input_is_one_line_and_status_1(words: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(words.split(), _never) == 1
    assert capsys.readouterr() == ("", f"extender: {line}\n")


def test_a_bad_profile_is_one_line(file: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    config = file("profiles:\n- schedulerName: x\n  plugins:\n    score:\n      enabled: [{name: Nope}]\n")
    assert command([f"--config={config}"], _never) == 1
    told = 'profiles[0].plugins.score.enabled: ScorePlugin "Nope" does not exist; is its package installed?'
    assert capsys.readouterr().err == f"extender: {config}: {told}\n"


def test_the_configuration_is_written_with_what_the_flags_change(tmp_path: Path, capsys: Any) -> None:
    written = tmp_path / "full.yaml"
    assert command([f"--write-config-to={written}", "--leader-elect=false"], _never) == 0
    assert "leaderElect: false" in written.read_text()
    assert "name: NodeResourcesFit" in written.read_text()
    assert command([f"--write-config-to={tmp_path}/no/x"], _never) == 1
    assert capsys.readouterr().err.endswith("/no/x: No such file or directory\n")


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["-h"], _never) == 0
    out = capsys.readouterr().out
    assert "\nLeader election flags:\n" in out
    assert "--leader-elect-lease-duration duration" in out
    assert "(default 15s)" in out
    assert "Exit status: 0 was told to stop" in out
    assert max(map(len, out.splitlines())) <= 120


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["--version"], _never) == 0
    assert capsys.readouterr().out.startswith("extender ")
