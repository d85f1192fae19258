"""Random faults while pods and nodes come and go: afterwards everything is consistent.

The faults follow from the seed. `STORMS=200 pytest tests/faults/test_random_faults.py` runs more seeds.
"""

import asyncio
import os
from random import Random

import pytest

from extender.fake_apiserver.kubelets import KubeletTiming
from extender.fake_apiserver.registry.resources import NODES, PODS
from tests.faults.builders import FaultHarness, make_node, run
from tests.faulty_apiserver import Fault, FaultKind

SEEDS = range(int(os.environ.get("STORMS", "4")))
STEPS = 60

RANDOM_FAULTS = (
    *(
        Fault(what, "watch", probability=0.3)
        for what in (FaultKind.BREAK_WATCH, FaultKind.END_WATCH, FaultKind.GONE, FaultKind.STALL_WATCH)
    ),
    *(
        Fault(what, "watch", probability=0.3, after_events=after)
        for after in (1, 4)
        for what in (
            FaultKind.TRUNCATE_EVENT,
            FaultKind.INVALID_JSON,
            FaultKind.DUPLICATE_EVENT,
            FaultKind.REPLAY_EVENT,
        )
    ),
    *(Fault(FaultKind.STATUS, probability=0.1, code=code) for code in (500, 503, 504)),
    Fault(FaultKind.STATUS, probability=0.1, code=429, retry_after="1"),
    Fault(FaultKind.GONE, "list", probability=0.3),
    *(Fault(what, "create", "pods/binding", probability=0.3) for what in (FaultKind.TIMEOUT, FaultKind.NO_RESPONSE)),
    Fault(FaultKind.DELAY, "create", "pods/binding", probability=0.3, delay_seconds=3.0),
    Fault(FaultKind.TIMEOUT, "patch", probability=0.3),
    Fault(FaultKind.TIMEOUT, "delete", probability=0.3),
)


async def inject_random_event(harness: FaultHarness, random: Random, step: int) -> None:
    """Sometimes disturb a replica, its connection, the store or a node; else restore connections."""
    match random.randrange(24):
        case 0:
            harness.server.store.compact()
        case 1:
            random.choice(harness.replicas).proxy.cut()
        case 2:
            random.choice(harness.replicas).proxy.stall()
        case 3:
            await random.choice(harness.replicas).kill()
        case 4:
            spec = {"spec": {"unschedulable": random.random() < 0.5}}
            harness.server.api.patch_strategically(NODES, "", f"n{random.randint(1, 4)}", spec)
        case 5:
            harness.server.api.create_from_manifest(make_node(f"late-{step}"))
        case _:
            for replica in harness.replicas:
                if random.random() < 0.3:
                    replica.proxy.restore()


async def run_random_faults(harness: FaultHarness, random: Random) -> None:
    """Run sixty steps of several seconds with random faults, pods, nodes, partitions and kills."""
    for step in range(STEPS):
        await asyncio.sleep(random.uniform(0.2, 3.0))
        harness.server.faults.clear()
        for fault in random.sample(RANDOM_FAULTS, random.randrange(4)):
            harness.server.faults.add(fault)
        for number in range(random.randrange(3)):
            priority = random.choice(("", "", "high"))
            harness.create_pods(
                f"p{step}-{number}", cpu=f"{random.choice((300, 700, 1500))}m", priorityClassName=priority
            )
        bound = [
            pod["metadata"]["name"] for pod in harness.server.api.list_objects(PODS) if pod["spec"].get("nodeName")
        ]
        for name in random.sample(bound, min(len(bound), random.randrange(3))):
            harness.server.api.delete(PODS, "default", name)
        await inject_random_event(harness, random, step)
        while len([each for each in harness.replicas if not each.task.done()]) < 2:
            await harness.start_scheduler()


@pytest.mark.parametrize("seed", SEEDS)
def test_after_random_faults_every_pod_is_bound_once_and_no_node_is_overcommitted(seed: int) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.server.api.create_from_manifest(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        )
        harness.create_nodes(4)
        await harness.start_leader()
        await run_random_faults(harness, Random(seed))
        harness.server.faults.clear()
        for replica in harness.replicas:
            replica.proxy.restore()
        for number in range(20):
            harness.server.api.create_from_manifest(make_node(f"spare-{number}"))
        await harness.start_scheduler()
        await harness.wait_until_consistent(seconds=900)
        assert harness.recorder.binding_count() > 30

    run(scenario, seed=seed, kubelet_timing=KubeletTiming(stop_seconds=0.5))
