"""`extender serve`: what its flags come to, and every fault of them told at once."""

from pathlib import Path

import pytest

from extender.cli.flags import parse
from extender.cli.serve import command
from extender.cli.serve_flags import FLAGS, GROUPS
from extender.cli.serve_options import options_of
from extender.client.kubeconfig import Place
from extender.cluster.state import ClusterState
from extender.config.faults import ConfigError
from extender.options import ServeOptions
from extender.process.extending import run
from extender.web.app import Paths
from extender.web.scaling import ScoreRange

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"


def options(*words: str) -> ServeOptions:
    return options_of(parse(words, FLAGS))


def faults(*words: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        options(*words)
    return [str(fault) for fault in caught.value.faults]


def test_without_flags_a_live_cluster_is_served_on_this_machine() -> None:
    found = options()
    assert isinstance(found.cluster, Place)
    assert (found.serving.address, found.serving.port, found.serving.certificate) == ("127.0.0.1", 8888, "")
    assert found.paths == Paths("/filter", "/prioritize", "/preempt", "/bind")
    assert (found.score_range, found.standalone) == (ScoreRange.TEN, False)


def test_the_kubeconfig_named_goes_before_the_configuration_s(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEAD + "clientConnection: {kubeconfig: /etc/one}\n")
    assert options(f"--config={file}").cluster.kubeconfig == "/etc/one"  # type: ignore[union-attr]
    assert options(f"--config={file}", "--kubeconfig=/etc/two").cluster.kubeconfig == "/etc/two"  # type: ignore[union-attr]


def test_a_file_is_a_recorded_cluster_and_none_is_none(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(NODE)
    recorded = options("-f", str(file)).cluster
    assert isinstance(recorded, ClusterState)
    assert list(recorded.snapshot().names) == ["n1"]
    assert options("--without-cluster").cluster is None


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (("--url-prefix=/extend/",), Paths("/extend/filter", "/extend/prioritize", "/extend/preempt", "/extend/bind")),
        (("--filter-verb=predicates/always_true", "--url-prefix", "scheduler", "--bind-verb="),
         Paths("/scheduler/predicates/always_true", "/scheduler/prioritize", "/scheduler/preempt", "")),
    ],
    ids=["a prefix", "names of old"],
)  # fmt: skip
def test_verbs_are_where_the_scheduler_is_told_to_look(words: tuple[str, ...], paths: Paths) -> None:
    assert options(*words).paths == paths


def test_requests_may_weigh_what_the_flags_say() -> None:
    assert options().most_bytes == (8 << 20, 256 << 20)
    assert options("--max-names-bytes=1000", "--max-nodes-bytes=2000").most_bytes == (1000, 2000)


def test_every_fault_of_the_flags_is_told_at_once() -> None:
    assert faults(
        "--port=70000", "--tls-cert-file=x", "--allowed-client-names=a", "--score-range=five", "--logging-format=xml",
        "--filter-verb=a b", "--bind-verb=preempt", "--authorization-always-allow-paths=/a*b",
    ) == [
        "--port: 70000 must be between 0 and 65535, inclusive; 0 takes a free one",
        "--tls-cert-file: want --tls-cert-file and --tls-private-key-file together, or neither",
        "--allowed-client-names: say nothing without --client-ca-file",
        '--score-range: unknown "five"; want 0-10 or raw',
        '--logging-format: unsupported log format "xml"; want text or json',
        '--authorization-always-allow-paths: only trailing * allowed in "/a*b"',
        '--filter-verb: "/a b" is no path of letters, digits, ".", "_", "~" and "-"',
        "--bind-verb: /preempt is where preempt is served already",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--max-names-bytes=0",), "--max-names-bytes: want at least 1 and at most --max-nodes-bytes"),
        (("--max-nodes-bytes=1000000",), "--max-names-bytes: want at least 1 and at most --max-nodes-bytes"),
        (("--client-ca-file=ca",), "--client-ca-file: certificates of clients need TLS; want --tls-cert-file as well"),
        (("--client-ca-file=ca", "--tls-cert-file=c", "--tls-private-key-file=k", "--anonymous-verbs"),
         "--anonymous-verbs: contradicts --client-ca-file; want one of the two"),
        (("--bind-address=::",), "--bind-address: everybody who reaches :: could ask; want --client-ca-file, or "
         "--anonymous-verbs if that is meant"),
        (("-f", "x", "--standalone"), "--standalone: is for a live cluster, not for --file"),
        (("-f", "x", "--without-cluster"), "--without-cluster: there is one in --file; want one of the two"),
        (("--without-cluster", "--kubeconfig=x"), "--kubeconfig: is for a live cluster, not for --without-cluster"),
        (("--filter-verb=", "--prioritize-verb=", "--preempt-verb=", "--bind-verb="),
         "--filter-verb: no verb is left to be served"),
        (("cluster.yaml",), '"extender serve" does not take any arguments, got ["cluster.yaml"]'),
        (("--kubeconfg=x",), 'unknown flag: --kubeconfg; did you mean "--kubeconfig"?'),
    ],
)  # fmt: skip
def test_flags_that_do_not_go_together_are_told(words: tuple[str, ...], told: str) -> None:
    assert faults(*words) == [told]


@pytest.mark.parametrize(
    "words",
    [("--bind-address=::1",), ("--bind-address=127.0.0.2",), ("--bind-address=localhost",),
     ("--bind-address=10.0.0.1", "--anonymous-verbs"),
     ("--bind-address=::", "--client-ca-file=ca", "--tls-cert-file=c", "--tls-private-key-file=k")],
)  # fmt: skip
def test_verbs_are_open_on_this_machine_to_certificates_and_where_it_is_said(words: tuple[str, ...]) -> None:
    assert options("--without-cluster", *words).serving.address == words[0].partition("=")[2]


def test_no_cluster_to_be_found_is_one_line_that_names_the_ways_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logs: None
) -> None:
    for name in ("KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert command(["--port=0"], run) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("extender: no kubeconfig: none given with --kubeconfig")
    assert line.endswith("; or give a recorded cluster with -f, or none with --without-cluster")


def test_help_lists_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["--help"], run) == 0
    page = capsys.readouterr().out
    assert all(f"--{flag.name}" in page for flags in GROUPS.values() for flag in flags)
