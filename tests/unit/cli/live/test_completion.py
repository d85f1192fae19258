"""The completion scripts, and the completions that they show."""

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.cli.live.completion import COMPLETE_VARIABLE
from tests.unit.cli.live.test_kubectl_plugin import install_kubectl

Command = Callable[..., tuple[int, str, str]]
DEMO = Path(__file__).parents[4] / "docs" / "examples" / "demo" / "cluster.yaml"


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o default -F _extender_completion extender"),
        ("zsh", "compdef _extender_completion extender"),
        ("zsh", 'if [ "${funcstack[1]}" = "_extender" ]; then'),
        ("fish", "complete --command extender"),
    ],
)
def test_each_shell_has_a_script(extender: Command, shell: str, line: str) -> None:
    status, out, err = extender("completion", shell)
    assert (status, err) == (0, "")
    assert line in out
    assert COMPLETE_VARIABLE in out


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(
    ("load", "completions"),
    [("fpath=({folder} $fpath); autoload -U _extender; _extender", ["made"]), ("source {folder}/_extender", [])],
    ids=["a file in fpath", "source"],
)
def test_zsh_completes_when_it_loads_the_script_for_the_first_time(
    extender: Command, tmp_path: Path, load: str, completions: list[str]
) -> None:
    (tmp_path / "_extender").write_text(extender("completion", "zsh")[1])
    stubs = "compdef() { }; env() { echo echo made; }; words=(extender ex); CURRENT=2"
    program = f"{stubs}; {load.format(folder=tmp_path)}"
    result = subprocess.run(["zsh", "-f", "-c", program], capture_output=True, text=True, check=True)
    assert (result.stdout.split(), result.stderr) == (completions, "")


@pytest.mark.parametrize(
    ("words", "position", "completion"),
    [("extender expl", "1", "explain"), ("extender explain --kubec", "2", "--kubeconfig")],
)
def test_commands_and_options_are_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, words: str, position: str, completion: str
) -> None:
    monkeypatch.setenv(COMPLETE_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", position)
    assert extender()[1].split() == [completion]


def complete(extender: Command, monkeypatch: pytest.MonkeyPatch, words: str) -> list[str]:
    """Return the completions of the last word, which is empty if *words* ends with a space."""
    monkeypatch.setenv(COMPLETE_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(shlex.split(f"{words}x")) - 1))
    return extender()[1].split()


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("explain -f {demo} shop/frontend-5d8c-k", ["shop/frontend-5d8c-k7wzd"]),
        ("explain -f {demo} batch/import --node gpu", ["gpu-a1", "gpu-b1"]),
        ("explain -f {demo}.missing ", []),
        ("what-if -f {demo} --drain gpu", ["gpu-a1", "gpu-b1"]),
        ("what-if -f {demo} --cordon high", ["highmem-c1"]),
        ("what-if -f {demo} --remove high", ["highmem-c1"]),
        ("what-if -f {demo} --add 2 --like gpu", ["gpu-a1", "gpu-b1"]),
        ("rebalance -f {demo} --empty --node gpu", ["gpu-a1", "gpu-b1"]),
        ("rebalance -f {demo} --for batch/i", ["batch/import"]),
        ("explain -f {demo} -n s", ["shop"]),
        ("what-if -f {demo} --namespace ", ["batch", "data", "ingress", "kube-system", "ml", "shop"]),
        ("explain --feature-gates GenericW", ["GenericWorkload=true"]),
        ("simulate --emulated-version 1.36 --feature-gates Gang", ["GangScheduling=true"]),
        ("compare --with-feature-gates SchedulerPop", ["SchedulerPopFromBackoffQ=false"]),
        ("explain --emulated-version ", ["1.36", "1.37"]),
        ("compare --with-emulated-version 1.37", ["1.37"]),
        ("config check --emulated-version 1.36", ["1.36"]),
    ],
)
def test_pods_nodes_feature_gates_and_releases_are_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, words: str, completions: list[str]
) -> None:
    assert complete(extender, monkeypatch, f"extender {words.format(demo=shlex.quote(str(DEMO)))}") == completions


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("schedule --leader-elect-ren", ["--leader-elect-renew-deadline"]),
        ("schedule -v 2 --leader-elect=false --write", ["--write-config-to"]),
        ("schedule --config ", []),
        ("serve --without", ["--without-cluster"]),
        ("serve --install-completion", []),
    ],
)
def test_flags_of_the_processes_are_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, words: str, completions: list[str]
) -> None:
    assert complete(extender, monkeypatch, f"extender {words}") == completions


def test_pods_of_the_live_cluster_are_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_kubectl(tmp_path, monkeypatch, f'echo "$@" > "{tmp_path}/flags"; echo pod/web-1; echo pod/db-0')
    assert complete(extender, monkeypatch, "extender explain -n shop we") == ["web-1"]
    assert (tmp_path / "flags").read_text() == "get pods --output=name --request-timeout=3s --namespace=shop\n"


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("explain -f {demo} --namespace = s", ["shop"]),
        ("explain --file = {demo} --namespace =", ["batch", "data", "ingress", "kube-system", "ml", "shop"]),
        ("explain -o = j", ["json"]),
    ],
)
def test_a_value_after_an_equals_sign_which_is_a_word_in_bash_is_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, words: str, completions: list[str]
) -> None:
    split_words = ["extender", *words.format(demo=DEMO).split()]
    monkeypatch.setenv(COMPLETE_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(split_words))
    monkeypatch.setenv("COMP_CWORD", str(len(split_words) - 1))
    assert extender()[1].split() == completions


def test_contexts_of_the_kubeconfig_are_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_kubectl(tmp_path, monkeypatch, f'echo "$@" > "{tmp_path}/flags"; echo arn:aws:eks:x/prod; echo staging')
    assert complete(extender, monkeypatch, "extender explain --context st") == ["staging"]
    assert (tmp_path / "flags").read_text() == "config get-contexts --output=name\n"
    assert complete(extender, monkeypatch, "extender fits --kubeconfig /k --context arn") == ["arn:aws:eks:x/prod"]
    assert (tmp_path / "flags").read_text() == "config get-contexts --output=name --kubeconfig=/k\n"


def test_namespaces_of_the_live_cluster_are_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_kubectl(tmp_path, monkeypatch, f'echo "$@" > "{tmp_path}/flags"; echo namespace/shop; echo namespace/ml')
    assert complete(extender, monkeypatch, "extender explain --context test -n ") == ["shop", "ml"]
    assert (tmp_path / "flags").read_text() == "get namespaces --output=name --request-timeout=3s --context=test\n"
