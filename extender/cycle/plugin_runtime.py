"""The plugin runner and the caches that scheduling cycles share."""

from dataclasses import dataclass, field

from extender.cycle.score_table import ScoreTable
from extender.framework.plugin_runner import PluginRunner
from extender.framework.result_cache import ResultCache


@dataclass(frozen=True, slots=True)
class PluginRuntime:
    """The plugin runner with its caches. Each scheduling thread has its own runtime.

    Attributes:
        runner: the runner that calls plugins.
        result_cache: the cached results of Filter and Score plugins.
        score_table: the cached weighted scores and their sums.
    """

    runner: PluginRunner = field(default_factory=PluginRunner)
    result_cache: ResultCache = field(default_factory=ResultCache)
    score_table: ScoreTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "score_table", ScoreTable(self.runner, self.result_cache))
