"""What a decision needs beside its inputs: the caller of plugins and the answers kept between decisions."""

from dataclasses import dataclass, field

from extender.decide.scoring import Scoring
from extender.framework.columns import ColumnCache
from extender.framework.runner import Runner


@dataclass(frozen=True, slots=True)
class Engine:
    """One per thread that decides.

    Attributes:
        run: calls plugins.
        columns: kept answers.
        scoring: scores and their sums, kept as well.
    """

    run: Runner = field(default_factory=Runner)
    columns: ColumnCache = field(default_factory=ColumnCache)
    scoring: Scoring = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scoring", Scoring(self.run, self.columns))
