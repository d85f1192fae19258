"""The options of `extender serve`, and all errors of its flags at once."""

from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.app.options import ServeOptions
from extender.cache.cache import Cache
from extender.cli.pflag import parse
from extender.cli.serve_flags import FLAGS
from extender.cli.serve_options import make_serve_options
from extender.client.kubeconfig import CredentialSource
from extender.config.errors import ConfigError
from extender.extender_api.best_node.choice import FilterAnswer
from extender.extender_api.request_limits import RequestLimits
from extender.extender_api.routes import VerbPaths
from extender.extender_api.score_scaling import ScoreRange

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"


def options(*words: str) -> ServeOptions:
    return make_serve_options(parse(words, FLAGS))


def errors(*words: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        options(*words)
    return [str(error) for error in caught.value.errors]


def test_the_default_is_a_live_cluster_on_loopback() -> None:
    result = options()
    assert isinstance(result.cluster, CredentialSource)
    assert (result.serving.address, result.serving.port, result.serving.cert_file) == ("127.0.0.1", 8888, "")
    assert result.paths == VerbPaths("/filter", "/prioritize", "/preempt", "/bind")
    assert (result.score_range, result.standalone) == (ScoreRange.TEN, False)


def test_the_flag_kubeconfig_overrides_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEAD + "clientConnection: {kubeconfig: /etc/one}\n")
    assert options(f"--config={file}").cluster.kubeconfig == "/etc/one"  # type: ignore[union-attr]
    assert options(f"--config={file}", "--kubeconfig=/etc/two").cluster.kubeconfig == "/etc/two"  # type: ignore[union-attr]


def test_a_file_is_a_recorded_cluster_and_without_cluster_is_none(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(NODE)
    recorded = options("-f", str(file)).cluster
    assert isinstance(recorded, Cache)
    assert list(recorded.snapshot().names) == ["n1"]
    assert options("--without-cluster").cluster is None
    newer = tmp_path / "newer.yaml"
    newer.write_text(NODE)
    overridden = options("-f", str(file), "-f", str(newer), "--override").cluster
    assert isinstance(overridden, Cache)
    assert list(overridden.snapshot().names) == ["n1"]


def test_filter_answers_all_feasible_nodes_or_the_best_with_a_time_limit_of_a_minute() -> None:
    assert options().filter_answer is FilterAnswer.FEASIBLE
    best = options("--filter-answer=best")
    assert (best.filter_answer, best.assume_timeout_seconds) == (FilterAnswer.BEST, 60.0)
    assert options("--filter-answer=best", "--assume-timeout=1m30s").assume_timeout_seconds == 90.0


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (("--url-prefix=/extend/",),
         VerbPaths("/extend/filter", "/extend/prioritize", "/extend/preempt", "/extend/bind")),
        (("--filter-verb=predicates/always_true", "--url-prefix", "scheduler", "--bind-verb="),
         VerbPaths("/scheduler/predicates/always_true", "/scheduler/prioritize", "/scheduler/preempt", "")),
    ],
    ids=["a prefix", "custom names"],
)  # fmt: skip
def test_the_paths_of_verbs_are_joined_as_in_kube_scheduler(words: tuple[str, ...], paths: VerbPaths) -> None:
    assert options(*words).paths == paths


def test_flags_set_the_limits_of_requests() -> None:
    assert options().request_limits == RequestLimits(8 << 20, 256 << 20, 100_000, 100_000)
    flags = ("--max-names-bytes=1000", "--max-nodes-bytes=2000", "--max-nodes=30", "--max-victims=40")
    assert options(*flags).request_limits == RequestLimits(1000, 2000, 30, 40)


def test_all_errors_of_the_flags_are_reported_at_once() -> None:
    assert errors(
        "--port=70000", "--tls-cert-file=x", "--allowed-client-names=a", "--score-range=five", "--logging-format=xml",
        "--filter-verb=a b", "--bind-verb=preempt", "--authorization-always-allow-paths=/a*b",
    ) == [
        "--port: 70000 must be between 0 and 65535, inclusive; 0 takes a free one",
        "--tls-cert-file: want --tls-cert-file and --tls-private-key-file together, or neither",
        '--authorization-always-allow-paths: only trailing * allowed in "/a*b"',
        '--logging-format: unsupported log format "xml"; want text or json',
        "--allowed-client-names: requires --client-ca-file",
        '--score-range: unknown "five"; want one of 0-10, relative, raw',
        '--filter-verb: "/a b" is not a path of letters, digits, ".", "_", "~" and "-"',
        "--bind-verb: /preempt is the path of preempt already",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-nodes=0",), "--max-nodes: 0 must be at least 1"),
        (("--max-victims=-1",), "--max-victims: -1 must be at least 1"),
        (("--max-names-bytes=0",), "--max-names-bytes: want at least 1 and at most --max-nodes-bytes"),
        (("--max-nodes-bytes=1000000",), "--max-names-bytes: want at least 1 and at most --max-nodes-bytes"),
        (("--client-ca-file=ca",), "--client-ca-file: client certificates require TLS; want --tls-cert-file as well"),
        (("--client-ca-file=ca", "--tls-cert-file=c", "--tls-private-key-file=k", "--anonymous-verbs"),
         "--anonymous-verbs: contradicts --client-ca-file; want one of the two"),
        (("--bind-address=::",), "--bind-address: every client of :: could call the verbs; want --client-ca-file, or "
         "--anonymous-verbs to allow it"),
        (("-f", "x", "--standalone"), "--standalone: is for a live cluster, not for --file"),
        (("-f", "x", "--without-cluster"), "--without-cluster: contradicts --file; want one of the two"),
        (("--filter-answer=one",), '--filter-answer: unknown "one"; want feasible or best'),
        (("--filter-answer=best", "--assume-timeout=0s"), "--assume-timeout: must be greater than 0"),
        (("--assume-timeout=30s",), "--assume-timeout: has no effect without --filter-answer=best"),
        (("--kube-scheduler-config=x",), "--kube-scheduler-config: has no effect without --filter-answer=best"),
        (("--filter-answer=best", "--filter-verb="),
         "--filter-answer: best requires the verb filter; leave out --filter-verb"),
        (("--filter-answer=best", "--without-cluster"),
         "--filter-answer: best requires a cluster; leave out --without-cluster"),
        (("--filter-answer=best", "--anonymous-verbs"),
         "--filter-answer: best contradicts --anonymous-verbs: every client could assume pods"),
        (("--filter-answer=best", "--standalone"),
         "--filter-answer: best contradicts --standalone: the scheduler and the caller would place the same pods"),
        (("--without-cluster", "--kubeconfig=x"), "--kubeconfig: is for a live cluster, not for --without-cluster"),
        (("--filter-verb=", "--prioritize-verb=", "--preempt-verb=", "--bind-verb="),
         "--filter-verb: want at least one verb"),
        (("--without-cluster", "--filter-verb=", "--prioritize-verb=", "--preempt-verb="),
         "--filter-verb: want at least one verb"),
        (("--bind-address=::", "--anonymous-verbs", "--filter-verb=", "--prioritize-verb=", "--preempt-verb="),
         "--filter-verb: want at least one verb"),
        (("--ui", "--without-cluster"), "--ui: the pages show a cluster; leave out --without-cluster"),
        (("--ui", "-f", "x", "--bind-address=::", "--anonymous-verbs"),
         "--ui: every client of :: could read the pages; want a loopback --bind-address"),
        (("--ui", "--bind-address=::", "--anonymous-verbs", "--authorization-always-allow-paths=/healthz,/u*"),
         '--authorization-always-allow-paths: every client could read the pages; leave out "/u*" or --ui'),
        (("--ui", "--secure-port=10260", "--authorization-always-allow-paths=/ui/*"),
         '--authorization-always-allow-paths: every client could read the pages; leave out "/ui/*" or --ui'),
        (("cluster.yaml",), '"extender serve" does not take any arguments, got ["cluster.yaml"]'),
        (("--kubeconfg=x",), 'unknown flag: --kubeconfg; did you mean "--kubeconfig"?'),
    ],
)  # fmt: skip
def test_contradicting_flags_are_an_error(words: tuple[str, ...], message: str) -> None:
    assert errors(*words) == [message]


@pytest.mark.parametrize(
    "words",
    [("--bind-address=::1",), ("--bind-address=127.0.0.2",), ("--bind-address=localhost",),
     ("--bind-address=10.0.0.1", "--anonymous-verbs"),
     ("--bind-address=::", "--client-ca-file=ca", "--tls-cert-file=c", "--tls-private-key-file=k")],
)  # fmt: skip
def test_loopback_client_certificates_and_anonymous_verbs_are_allowed(words: tuple[str, ...]) -> None:
    assert options("--without-cluster", *words).serving.address == words[0].partition("=")[2]


def test_the_pages_are_off_by_default_and_allowed_where_readers_are_authenticated() -> None:
    assert options().serves_ui is False
    certificates = ("--bind-address=::", "--client-ca-file=ca", "--tls-cert-file=c", "--tls-private-key-file=k")
    for words in ((), certificates, ("--bind-address=::", "--anonymous-verbs"), ("--secure-port=10260",)):
        assert options("--ui", *words).serves_ui is True
    assert options("--ui", "--authorization-always-allow-paths=/ui/*").serves_ui is True


def test_the_log_names_what_the_given_kube_scheduler_no_longer_calls(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        HEAD + "percentageOfNodesToScore: 100\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, "
        "{name: NodeResourcesFit}, {name: ImageLocality}, {name: DefaultBinder}]}}}]\n"
        "extenders:\n"
        "  - {urlPrefix: 'http://127.0.0.1:9999', filterVerb: filter}\n"
        "  - {urlPrefix: 'http://127.0.0.1:8888', filterVerb: filter, nodeCacheCapable: true}\n"
    )
    assert options("--filter-answer=best", f"--kube-scheduler-config={file}").start_lines == (
        "kube-scheduler calls no Score plugin for pods of default-scheduler: NodeResourcesFit, ImageLocality "
        "have no effect",
    )
    assert options().start_lines == ()
    assert options("--filter-answer=best").start_lines == (
        "Filter leaves one node: kube-scheduler calls neither its Score plugins nor prioritize of any extender",
    )


def test_warnings_about_the_configuration_are_lines_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plugins.yaml"
    file.write_text(
        HEAD + "profiles: [{plugins: {multiPoint: {enabled: [{name: Coscheduling}]}, "
        "queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: '*'}]}}, "
        "pluginConfig: [{name: Coscheduling, args: {podGroupBackoffSeconds: 5}}]}]\n"
    )
    assert options(f"--config={file}").start_lines == (
        "Coscheduling: podGroupBackoffSeconds has no effect: a group that cannot be placed backs off as pods do, "
        "by podInitialBackoffSeconds",
    )
    assert capsys.readouterr().err == ""


def test_notes_about_a_recording_are_lines_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were plain lines on standard error, also with --logging-format json."""
    file = tmp_path / "c.yaml"
    file.write_text("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}}\n---\n" + HEAD)
    assert options(f"--file={file}").start_lines == ("skipped kinds that scheduling does not read: 1 Secret",)
    assert capsys.readouterr().err == ""


def test_a_contradiction_in_the_configuration_of_kube_scheduler_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        HEAD + "extenders:\n"
        "  - {urlPrefix: 'http://127.0.0.1:8888', filterVerb: filter}\n"
        "  - {urlPrefix: 'http://127.0.0.1:9999', prioritizeVerb: prioritize, weight: 1}\n"
    )
    with pytest.raises(InputError) as caught:
        options("--filter-answer=best", f"--kube-scheduler-config={file}")
    assert str(caught.value) == (
        f"{file}: extenders[1].prioritizeVerb: is never called: http://127.0.0.1:8888 leaves one node; "
        "remove it, or set --filter-answer=feasible"
    )
