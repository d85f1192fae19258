"""The plugin runner and the caches that scheduling cycles share."""

from dataclasses import dataclass, field

from extender.cycle.tables.filter_table import FilterTables
from extender.cycle.tables.score_table import ScoreTables
from extender.framework.plugin_runner import PluginRunner
from extender.framework.result_cache import ResultCache


@dataclass(frozen=True, slots=True)
class PluginRuntime:
    """The plugin runner with its caches. Each scheduling thread has its own runtime.

    Attributes:
        runner: the runner that calls plugins.
        result_cache: whether results are cached, and the cached node sets.
        filter_tables: the cached rejections.
        score_tables: the cached scores and their sums.
    """

    runner: PluginRunner = field(default_factory=PluginRunner)
    result_cache: ResultCache = field(default_factory=ResultCache)
    filter_tables: FilterTables = field(init=False)
    score_tables: ScoreTables = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "filter_tables", FilterTables(self.runner))
        object.__setattr__(self, "score_tables", ScoreTables(self.runner))
