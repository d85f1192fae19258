"""The options of `extender rebalance` that describe the plan."""

from typing import Annotated

import typer

ForOption = Annotated[
    list[str] | None,
    typer.Option("--for", metavar="POD", help="Let this pod, TYPE/NAME or podgroup/NAME run with the fewest moves."),
]
EmptyOption = Annotated[bool, typer.Option("--empty", help="Find the nodes that can be emptied.")]
FixOption = Annotated[bool, typer.Option("--fix", help="Move the pods whose node violates their hard rules.")]
NodeOption = Annotated[
    list[str] | None, typer.Option("--node", metavar="NODE", help="With --empty: consider only this node.")
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
