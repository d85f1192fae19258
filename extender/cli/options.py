"""The options of the commands, as types of the parameters of Typer's functions."""

from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import Annotated, Any

import typer

from extender.cli.terminal import EXIT_CODE_FLAG
from extender.config.feature_gates import get_scheduling_defaults
from extender.config.releases import DEFAULT_RELEASE, RELEASES


class OutputFormat(Enum):
    """The output format."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def make_completion(resource: str) -> Callable[[typer.Context, str], list[str]]:
    """Return the completion of names of a resource. `cli.live.object_names` is imported only for completions."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        object_names: Any = import_module("extender.cli.live.object_names")
        names: list[str] = object_names.complete(resource, context.params, incomplete)
        return names

    return complete


complete_nodes = make_completion("nodes")
_complete_namespaces = make_completion("namespaces")


def complete_releases(incomplete: str) -> list[str]:
    """Return the releases that can be emulated and begin with *incomplete*."""
    return [version for version in RELEASES if version.startswith(incomplete)]


def complete_gates(context: typer.Context, incomplete: str) -> list[str]:
    """Return the gates that affect scheduling and begin with *incomplete*, with the value that is not the default."""
    release = RELEASES.get(context.params.get("emulated_version") or "", DEFAULT_RELEASE)
    values = (f"{name}={str(not default).lower()}" for name, default in get_scheduling_defaults(release).items())
    return [value for value in values if value.startswith(incomplete)]


# -- the cluster

FilesOrClusterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="Recorded cluster: YAML or JSON, plain or gzipped, or a directory of such files; - is standard input. "
        "May be repeated. "
        "Default: the live cluster of the current kubeconfig.",
    ),
]
OverrideOption = Annotated[
    bool, typer.Option("--override", help="A later object replaces an earlier one of the same kind and name.")
]
KubeconfigOption = Annotated[
    str, typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig of the live cluster. Default: as in kubectl.")
]
ContextOption = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Context in the kubeconfig.",
        autocompletion=make_completion("contexts"),
    ),
]
NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Namespace of the pods. Default: the context's; with -f all namespaces.",
        autocompletion=_complete_namespaces,
    ),
]
AllNamespacesOption = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Consider the pending pods of all namespaces.")
]
SelectorOption = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="Label selector of the pods, such as app=web,!old.")
]

# -- the scheduler

ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        metavar="FILE",
        help="KubeSchedulerConfiguration or Policy in force. Default: the one in the recording, else the built-in one.",
    ),
]
GatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=BOOL",
        help="Feature gates to enable or disable, as in kube-scheduler. May be repeated.",
        autocompletion=complete_gates,
    ),
]
EmulatedVersionOption = Annotated[
    str,
    typer.Option(
        "--emulated-version",
        metavar="VERSION",
        help=f"Kubernetes release whose kube-scheduler decides: {' or '.join(RELEASES)}. "
        f"Default: that of the live cluster or of a recording of `extender record`, or {DEFAULT_RELEASE.version}.",
        autocompletion=complete_releases,
    ),
]
SeedOption = Annotated[int, typer.Option(metavar="N", help="Seed of the choice between equally good nodes.")]

# -- the answer

OutputOption = Annotated[OutputFormat, typer.Option("--output", "-o", help="Output format.")]
ExitCodeOption = Annotated[
    bool,
    typer.Option(
        EXIT_CODE_FLAG, help="Exit with 0 if all pods fit, 3 if a pod has to wait, and 4 after an error. For scripts."
    ),
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print the traceback of each plugin exception on standard error.")
]

# -- the changes of a scenario

DrainOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE", help="Cordon a node and evict its pods.", autocompletion=complete_nodes),
]
CordonOption = Annotated[
    list[str] | None, typer.Option(metavar="NODE", help="Cordon a node.", autocompletion=complete_nodes)
]
RemoveOption = Annotated[
    list[str] | None, typer.Option(metavar="NODE", help="Lose a node without a drain.", autocompletion=complete_nodes)
]
LoseOption = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Lose all nodes with this label, such as a zone.")
]
AddOption = Annotated[list[int] | None, typer.Option(metavar="N", help="Add N nodes; with --like.")]
LikeOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE", help="The node that the added nodes equal.", autocompletion=complete_nodes),
]
NodesOption = Annotated[list[str] | None, typer.Option(metavar="FILE", help="Add the nodes in a file: YAML or JSON.")]
PodsOption = Annotated[list[str] | None, typer.Option(metavar="FILE", help="Add the pods in a file: YAML or JSON.")]
ReplicasOption = Annotated[int, typer.Option(metavar="N", help="Add N copies of each pod of --pods.")]
ScaleOption = Annotated[
    list[str] | None, typer.Option(metavar="KIND/NAME=N", help="Give a workload N pods: deployment/web=30.")
]
ScaleNamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="The namespace of the workload of --scale. Default: the context's; with -f default.",
        autocompletion=_complete_namespaces,
    ),
]
TaintOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE=KEY[=VALUE]:EFFECT", help="Taint a node; with a final - remove the taint."),
]
LabelOption = Annotated[
    list[str] | None, typer.Option(metavar="NODE=KEY=VALUE", help="Set a label of a node; NODE=KEY- removes it.")
]
PreemptOption = Annotated[bool, typer.Option("--preempt", help="Let pods evict pods of lower priority.")]
SweepOption = Annotated[
    str, typer.Option(metavar="FILE", help="Run the scenarios in a YAML or JSON file instead of one scenario.")
]
ResultsOption = Annotated[
    str, typer.Option(metavar="FILE", help="With --sweep: add the results to a file, and continue where it ends.")
]
JobsOption = Annotated[int, typer.Option(metavar="N", help="With --sweep: the number of processes; 0: one per core.")]
SchedulerAddressOption = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="With --sweep: the Dask scheduler whose workers run the scenarios, such as tcp://10.0.0.7:8786. "
        "The workers read the same files, under the same paths.",
    ),
]
CostLabelOption = Annotated[str, typer.Option(metavar="KEY", help="The node label whose value is the price.")]
PricesOption = Annotated[
    str, typer.Option(metavar="FILE", help="Prices by node name or instance type: a YAML or JSON mapping.")
]

# -- a plan of evictions

ForOption = Annotated[
    list[str] | None,
    typer.Option(
        "--for",
        metavar="POD",
        help="Let this pod, TYPE/NAME or podgroup/NAME run with the fewest moves.",
        autocompletion=make_completion("pods"),
    ),
]
EmptyOption = Annotated[bool, typer.Option("--empty", help="Find the nodes that can be emptied.")]
FixOption = Annotated[bool, typer.Option("--fix", help="Move the pods whose node violates their hard rules.")]
NodeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--node", metavar="NODE", help="With --empty: consider only this node.", autocompletion=complete_nodes
    ),
]
MaxMovesOption = Annotated[int, typer.Option(metavar="N", help="The maximum number of evictions of a plan.")]
MaxAttemptsOption = Annotated[
    int, typer.Option(metavar="N", help="The maximum number of scheduling attempts of the search.")
]
ApplyOption = Annotated[
    bool, typer.Option("--apply", help="Carry out the plan in the live cluster. Stop at the first surprise.")
]
TimeoutOption = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0, help="With --apply: how long to wait for budgets and new pods per step."),
]
