"""What a running scheduler is asked for by its pages: figures, usage, why a pod waits, and a dump for the log."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from extender.decide.engine import Engine
from extender.observe.resource_usage import resource_usage
from extender.observe.scheduling import Figures
from extender.offline.explain import explained
from extender.offline.memberships import Memberships
from extender.queueing.dump import dump_nodes, dump_queue
from extender.standalone import Standalone

log = logging.getLogger("extender.process")

_OPERATIONS: Final[Mapping[str, str]] = {
    "bind": "binding",
    "_evict_all": "DefaultPreemption",
    "_scores": "prioritizing_extender",
    "written": "status",
}
"""What tasks do, by the name of their coroutine."""


def figures(scheduler: Standalone) -> Figures:
    """The states the page of metrics asks for."""
    return Figures(
        pending=scheduler.queue.counts,
        cached=lambda: cached(scheduler),
        rejected=lambda: rejected(scheduler),
        in_flight=lambda: in_flight(scheduler),
        running=running,
        sessions=3,
    )


def cached(scheduler: Standalone) -> Mapping[str, int]:
    """Source: H017."""
    placed = scheduler.state.placed
    assumed = sum(1 for pod in placed.values() if pod.assumed)
    return {"nodes": len(scheduler.state.snapshot()), "pods": len(placed), "assumed_pods": assumed}


def rejected(scheduler: Standalone) -> Mapping[tuple[str, str], int]:
    """Waiting pods by plugin and profile. Source: H018."""
    found: Counter[tuple[str, str]] = Counter()
    for waiting in scheduler.queue:
        for plugin in waiting.all_rejectors:
            found[plugin, waiting.query.spec.scheduler_name] += 1
    return found


def in_flight(scheduler: Standalone) -> Mapping[str, int]:
    """Source: H021."""
    flying = scheduler.queue.in_flight
    return {**flying.by_label(), "PodPopped": len(flying)}


def running() -> Mapping[str, int]:
    """Tasks of the event loop by operation; those of the process itself are left out. Source: H019."""
    found = dict.fromkeys(_OPERATIONS.values(), 0)
    for task in asyncio.all_tasks():
        operation = _OPERATIONS.get(getattr(task.get_coro(), "__name__", ""))
        if operation is not None:
            found[operation] += 1
    return found


def usage(scheduler: Standalone, *, leading: bool) -> Iterator[str]:
    """The page `/metrics/resources`: nothing while another leads. Source: H039."""
    if not leading:
        return iter(())
    placed = [(record.pod, record.node_name) for record in scheduler.state.placed.values()]
    return resource_usage([*placed, *((pod, "") for pod in scheduler.state.waiting.values())])


def explain(
    scheduler: Standalone, engines: Mapping[str, Engine], namespace: str, name: str, *, as_json: bool
) -> str | None:
    """Why a pod waits, or where it could go; None if it is not known, or not ours.

    Asks with *engines* of its own, so that metrics of plugins tell of scheduling only.
    """
    key = f"{namespace}/{name}"
    for pod in scheduler.state.waiting.values():
        profile = scheduler.desk.profiles.get(pod.spec.scheduler_name)
        if pod.key == key and profile is not None:
            engine = engines[profile.scheduler_name]
            groups = Memberships(scheduler.state, scheduler.desk.profiles, engine)
            found = explained(pod, scheduler.state, profile, engine, groups)
            return msgspec.json.encode(found.values()).decode() + "\n" if as_json else found.text()
    for record in scheduler.state.placed.values():
        if record.key == key:
            values: dict[str, Any] = {"node": record.node_name, "assumed": record.assumed}
            text = f"Pod {key}\n  is on node {record.node_name}\n"
            return msgspec.json.encode(values).decode() + "\n" if as_json else text
    return None


def dump(scheduler: Standalone) -> None:
    """Write everything that is known to the log. Source: H071."""
    log.info("Dump of cached NodeInfo", extra={"nodes": dump_nodes(scheduler.state.snapshot())})
    summary, pods = dump_queue(scheduler.queue)
    log.info("Dump of scheduling queue", extra={"summary": summary, "pods": pods})
