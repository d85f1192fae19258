"""The options of `extender serve`, and all errors of its flags at once."""

from pathlib import Path

import pytest

from extender.app.options import ServeOptions
from extender.cache.cache import Cache
from extender.cli.pflag import parse
from extender.cli.serve_flags import FLAGS
from extender.cli.serve_options import make_serve_options
from extender.client.kubeconfig import CredentialSource
from extender.config.errors import ConfigError
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


def test_flags_set_the_maximum_body_sizes() -> None:
    assert options().max_body_bytes == (8 << 20, 256 << 20)
    assert options("--max-names-bytes=1000", "--max-nodes-bytes=2000").max_body_bytes == (1000, 2000)


def test_all_errors_of_the_flags_are_reported_at_once() -> None:
    assert errors(
        "--port=70000", "--tls-cert-file=x", "--allowed-client-names=a", "--score-range=five", "--logging-format=xml",
        "--filter-verb=a b", "--bind-verb=preempt", "--authorization-always-allow-paths=/a*b",
    ) == [
        "--port: 70000 must be between 0 and 65535, inclusive; 0 takes a free one",
        "--tls-cert-file: want --tls-cert-file and --tls-private-key-file together, or neither",
        "--allowed-client-names: requires --client-ca-file",
        '--score-range: unknown "five"; want 0-10 or raw',
        '--logging-format: unsupported log format "xml"; want text or json',
        '--authorization-always-allow-paths: only trailing * allowed in "/a*b"',
        '--filter-verb: "/a b" is not a path of letters, digits, ".", "_", "~" and "-"',
        "--bind-verb: /preempt is the path of preempt already",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-names-bytes=0",), "--max-names-bytes: want at least 1 and at most --max-nodes-bytes"),
        (("--max-nodes-bytes=1000000",), "--max-names-bytes: want at least 1 and at most --max-nodes-bytes"),
        (("--client-ca-file=ca",), "--client-ca-file: client certificates require TLS; want --tls-cert-file as well"),
        (("--client-ca-file=ca", "--tls-cert-file=c", "--tls-private-key-file=k", "--anonymous-verbs"),
         "--anonymous-verbs: contradicts --client-ca-file; want one of the two"),
        (("--bind-address=::",), "--bind-address: every client of :: could call the verbs; want --client-ca-file, or "
         "--anonymous-verbs to allow it"),
        (("-f", "x", "--standalone"), "--standalone: is for a live cluster, not for --file"),
        (("-f", "x", "--without-cluster"), "--without-cluster: contradicts --file; want one of the two"),
        (("--without-cluster", "--kubeconfig=x"), "--kubeconfig: is for a live cluster, not for --without-cluster"),
        (("--filter-verb=", "--prioritize-verb=", "--preempt-verb=", "--bind-verb="),
         "--filter-verb: want at least one verb"),
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
