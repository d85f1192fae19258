"""An examination as text for people: who refuses the pod and what would help, or which node wins and why."""

from collections import Counter
from typing import Final

from extender.cluster.snapshot import Snapshot
from extender.decide.examine import Examination
from extender.decide.rank import Ranking
from extender.framework.verdict import Status
from extender.offline.answers import best_names, feasible_names
from extender.offline.evictions import evictions
from extender.offline.layout import columns, counted
from extender.offline.misses import nearest_misses
from extender.offline.unbound import unbound_claims

_MISSES: Final = 5
_BEST: Final = 3
_ENDED: Final = "  is not scheduled: an error ends the attempt, another follows after a while (reason SchedulerError)"


def explanation(examination: Examination, cluster: Snapshot) -> str:
    """The text, which ends with a line break."""
    attempt = examination.attempt
    if examination.held_back is not None:
        lines = _held_back(examination.held_back)
    elif attempt is None or attempt.error is not None:
        lines = [_ENDED, f"  {examination.message}"]
    elif attempt.any:
        lines = _fits(examination)
    else:
        lines = _fits_nowhere(examination, cluster)
    return "\n".join([f"Pod {examination.pod.key}", *lines]) + "\n"


def _held_back(status: Status) -> list[str]:
    return [f"  is held back before the queue by {status.plugin}: {status.message}"]


def _fits_nowhere(examination: Examination, cluster: Snapshot) -> list[str]:
    lines = [f"  fits on none of {counted(len(examination.names), 'node')}", f"  {examination.message}"]
    lines += _before(examination)
    lines += unbound_claims(examination, cluster)
    lines += evictions(examination)
    lines += _refusals(examination)
    misses = nearest_misses(examination, cluster, _MISSES)
    if misses:
        lines += ["", "  Nearest misses, and what is in the way"]
        for miss in misses:
            name = f"{miss.node} and others" if miss.alike else miss.node
            lines.append(f"    {name}: {miss.lines[0]}")
            lines += [f"      {line}" for line in miss.lines[1:]]
    return lines


def _before(examination: Examination) -> list[str]:
    """What PreFilter did before any node was asked."""
    attempt = examination.attempt
    if attempt is None:
        return []
    if attempt.before.status is not None:
        who = attempt.before.status.plugin
        by = f" by {who}" if who else ""
        return ["", f"  It was turned away{by} before any node was asked: {attempt.before.status.message}"]
    if attempt.before.nodes is not None:
        names = ", ".join(sorted(attempt.before.nodes)) or "none"
        return ["", f"  Only these nodes were asked ({', '.join(attempt.before.restrictors)}): {names}"]
    return []


def _refusals(examination: Examination) -> list[str]:
    """How many nodes each plugin refuses for each reason, and on how many of them it is the only one to refuse."""
    counts: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    for verdict in examination.nodes.values():
        for plugin, status in verdict.refusals.items():
            for reason in status.reasons:
                counts[plugin, reason] += 1
                alone[plugin, reason] += len(verdict.refusals) == 1 and len(status.reasons) == 1
    if not counts:
        return []
    rows = [("NODES", "ONLY THIS", "PLUGIN", "WHY")]
    for (plugin, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        rows.append((str(count), str(alone[plugin, reason]), plugin, reason))
    return ["", "  Who refuses it, every plugin asked about every node", *columns(rows, right=[0, 1], indent="    ")]


def _fits(examination: Examination) -> list[str]:
    feasible, ranking = feasible_names(examination), examination.ranking
    lines = [f"  fits on {len(feasible)} of {counted(len(examination.names), 'node')}"]
    if ranking is None or (ranking.error is not None and len(feasible) > 1):
        return [*lines, _ENDED, f"  {examination.message}"]
    if len(feasible) == 1:
        lines.append(f"  {feasible[0]} is the only one, so it is taken whatever its score")
    else:
        lines.append(f"  {_winner(examination, ranking)}")
    if ranking.plugins:
        lines += _scores(examination, ranking)
    return lines + _before(examination) + _refusals(examination)


def _order(examination: Examination, ranking: Ranking) -> list[int]:
    """Places in the ranking, the best first, equals by name."""
    totals = ranking.totals.tolist()
    rows = ranking.rows.tolist()
    return sorted(range(len(rows)), key=lambda place: (-totals[place], examination.names[rows[place]]))


def _winner(examination: Examination, ranking: Ranking) -> str:
    """Which node is best, and which plugins made it win against the best of the others."""
    best = best_names(examination)
    order = _order(examination, ranking)
    totals = ranking.totals.tolist()
    top = totals[order[0]]
    if len(best) == len(order):
        return f"all are equally good (total {top}); one of them is taken at random"
    first, second = order[0], order[len(best)]
    rival = examination.names[int(ranking.rows[second])]
    if len(best) == 1:
        head = f"{best[0]} is best (total {top}), {top - totals[second]} ahead of {rival}"
    else:
        shown = ", ".join(best[:_BEST]) + (f" and {len(best) - _BEST} more" if len(best) > _BEST else "")
        head = (
            f"{shown} are equally good (total {top}), {top - totals[second]} ahead of {rival}; one is taken at random"
        )
    gains = {
        name: int(scores.normalized[first] - scores.normalized[second]) * scores.weight
        for name, scores in ranking.plugins.items()
    }
    parts = [f"{name} {gain:+d}" for name, gain in sorted(gains.items(), key=lambda item: -item[1]) if gain]
    return f"{head}: {', '.join(parts)}" if parts else head


def _scores(examination: Examination, ranking: Ranking) -> list[str]:
    """A table of the best nodes: every plugin's raw score, the same brought to 0..100, and that times its weight."""
    places = _order(examination, ranking)[:_BEST]
    names = [examination.names[int(ranking.rows[place])] for place in places]
    rows = [("PLUGIN", *(cell for name in names for cell in (name, "", "")))]
    rows.append(("", *(cell for _ in names for cell in ("raw", "of 100", "weighted"))))
    for plugin, scores in ranking.plugins.items():
        cells: list[str] = []
        for place in places:
            normal = int(scores.normalized[place])
            cells += [str(int(scores.raw[place])), str(normal), f"x{scores.weight} = {normal * scores.weight}"]
        rows.append((plugin, *cells))
    rows.append(("total", *(cell for place in places for cell in ("", "", str(int(ranking.totals[place]))))))
    title = "Scores" if len(names) == len(ranking.rows) else f"Scores of the best {len(names)} nodes"
    return ["", f"  {title}", *columns(rows, right=range(1, 3 * len(names) + 1), indent="    ")]
