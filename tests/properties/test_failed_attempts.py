"""A reused failed attempt equals a fresh one, and leaves the nodes of later pods as they would be without reuse."""

from random import Random

import pytest

from extender.analysis.permit_simulation import Attempt
from extender.analysis.pod_placer import FailedAttempts, PodPlacer
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.planning.what_if import find_preemption
from tests.properties.test_what_if import make_random_cluster, make_random_spec
from tests.unit.planning.clusters import SETUP, decode_pod, make_cache, pod


def make_alike_pods(rng: Random) -> list[Pod]:
    """Make 40 pods of 6 kinds in random order; some kinds are large, and some may preempt."""
    specs = []
    for _ in range(6):
        spec = make_random_spec(rng, rng.choice("xyz"))
        if rng.random() < 0.3:
            spec = {"priority": rng.randint(0, 3)}
        specs.append((rng.choice(["500m", "1", "3", "5"]), spec))
    kinds = [rng.choice(specs) for _ in range(40)]
    return [decode_pod(pod(f"new-{number:02}", cpu, **spec)) for number, (cpu, spec) in enumerate(kinds)]


def place_with_changes(cache: Cache, pods: list[Pod], seed: int) -> list[Attempt]:
    """Place *pods* one after another. Some attempts follow a deleted pod or node, or a pod taken off its node."""
    placer = PodPlacer(cache, SETUP.profiles, wiring.make_runtime(), seed)
    rng = Random(seed)
    attempts: list[Attempt] = []
    for new_pod in pods:
        change = rng.random()
        if change < 0.1:
            bound_uids = sorted(uid for uid in cache.assigned_pods if not cache.is_assumed(uid))
            cache.remove_pod(rng.choice(bound_uids or [""]))
        elif change < 0.13:
            cache.remove_node(rng.choice(sorted(cache.names) or [""]))
        elif change < 0.2 and attempts and attempts[-1].node:
            placer.unassign(attempts[-1].pod.metadata.uid)
        attempts.append(placer.place(new_pod))
    return attempts


def describe(attempts: list[Attempt]) -> list[tuple[object, ...]]:
    return [
        (
            attempt.pod.key,
            attempt.node,
            attempt.reasons,
            attempt.message,
            attempt.failure and attempt.failure.rejectors,
            describe_preemption(attempt),
        )
        for attempt in attempts
    ]


def describe_preemption(attempt: Attempt) -> tuple[str, list[str]] | None:
    candidate = find_preemption(attempt)
    return None if candidate is None else (candidate.node_name, [victim.key for victim in candidate.victims])


@pytest.mark.parametrize("seed", range(60))
def test_attempts_with_reused_failures_equal_fresh_attempts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    nodes, assigned_pods = make_random_cluster(rng)
    pods = make_alike_pods(rng)
    attempts = place_with_changes(make_cache(*nodes, *assigned_pods), pods, seed)
    monkeypatch.setattr(FailedAttempts, "find", lambda *_: None)
    fresh_attempts = place_with_changes(make_cache(*nodes, *assigned_pods), pods, seed)
    assert describe(attempts) == describe(fresh_attempts)


def test_the_random_clusters_reuse_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    reused = []
    find = FailedAttempts.find

    def find_and_count(failed_attempts: FailedAttempts, key: object) -> object:
        failure = find(failed_attempts, key)
        reused.append(failure is not None)
        return failure

    monkeypatch.setattr(FailedAttempts, "find", find_and_count)
    for seed in range(60):
        rng = Random(seed)
        nodes, assigned_pods = make_random_cluster(rng)
        place_with_changes(make_cache(*nodes, *assigned_pods), make_alike_pods(rng), seed)
    assert sum(reused) > 100
