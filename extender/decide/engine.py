"""What a decision needs beside its inputs: the caller of plugins and the answers kept between decisions."""

from dataclasses import dataclass, field

from extender.framework.columns import ColumnCache
from extender.framework.runner import Runner


@dataclass(frozen=True, slots=True)
class Engine:
    """One per thread that decides.

    Attributes:
        run: calls plugins.
        columns: kept answers.
    """

    run: Runner = field(default_factory=Runner)
    columns: ColumnCache = field(default_factory=ColumnCache)
