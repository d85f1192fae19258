"""The options of `extender what-if` that describe the changes of the cluster."""

from typing import Annotated

import typer

DrainOption = Annotated[list[str] | None, typer.Option(metavar="NODE", help="Cordon a node and evict its pods.")]
CordonOption = Annotated[list[str] | None, typer.Option(metavar="NODE", help="Cordon a node.")]
RemoveOption = Annotated[list[str] | None, typer.Option(metavar="NODE", help="Lose a node without a drain.")]
LoseOption = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Lose all nodes with this label, such as a zone.")
]
AddOption = Annotated[list[int] | None, typer.Option(metavar="N", help="Add N nodes; with --like.")]
LikeOption = Annotated[list[str] | None, typer.Option(metavar="NODE", help="The node that the added nodes equal.")]
NodesOption = Annotated[list[str] | None, typer.Option(metavar="FILE", help="Add the nodes in a file.")]
PodsOption = Annotated[list[str] | None, typer.Option(metavar="FILE", help="Add the pods in a file.")]
ReplicasOption = Annotated[int, typer.Option(metavar="N", help="Add N copies of each pod of --pods.")]
ScaleOption = Annotated[
    list[str] | None, typer.Option(metavar="KIND/NAME=N", help="Give a workload N pods: deployment/web=30.")
]
NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="The namespace of the workload of --scale. Default: the context's; with -f default.",
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
SeedOption = Annotated[int, typer.Option(help="Seed of the choice between equally good nodes.")]
