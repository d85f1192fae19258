"""Options of kubectl that a command lacks: the error names what to use in their place."""

from collections.abc import Callable

import pytest

from extender.cli.live.kubectl_options import find_advice

Command = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-w",), "No such option: -w; `extender ui` follows a cluster"),
        (("--as=eve",), "No such option: --as; set as, as-groups and as-uid of the user in a kubeconfig"),
        (("--user", "eve"), "No such option: --user; write it into a kubeconfig; --kubeconfig and --context select it"),
        (("--field-selector", "a=b"), "No such option: --field-selector; without names all pending pods are meant"),
        (
            ("-o", "jsonpath={.pods}"),
            "is not one of 'table', 'json', 'yaml'; the table has all columns, and json has all values, for jq",
        ),
    ],
)
def test_an_option_of_kubectl_is_refused_with_what_to_use_in_its_place(
    extender: Command, arguments: tuple[str, ...], message: str
) -> None:
    status, _, err = extender("explain", *arguments)
    assert status == 2
    assert message in err
    assert "Possible options" not in err


def test_the_options_of_a_drain_are_not_needed(extender: Command) -> None:
    _, _, err = extender("what-if", "--drain", "n1", "--ignore-daemonsets")
    assert err.endswith("--ignore-daemonsets; leave it out; a copy of the cluster is drained without it\n")
    assert "--dry-run; only rebalance --apply changes a cluster" in extender("rebalance", "--fix", "--dry-run")[2]


@pytest.mark.parametrize("option", ["-n", "-A", "--selector"])
def test_a_selection_of_pods_is_refused_by_a_command_about_all_of_them(extender: Command, option: str) -> None:
    status, _, err = extender("simulate", option, "shop")
    assert status == 2
    assert err.endswith(f"No such option: {option}; this command is about the pods of all namespaces\n")


def test_another_option_and_another_format_have_no_such_advice(extender: Command) -> None:
    assert find_advice("--colour") == ""
    assert "No such option: --names (Possible options: --all-namespaces, " in extender("explain", "--names")[2]
    for form in ("xml", "json"):
        message = f"'{form}' is not one of 'table', 'jsonl', 'csv'.\n"
        assert extender("experiment", "-o", form)[2].endswith(message)
