"""Everything goes wrong at random while pods and nodes come and go; when it stops, all is as it must be.

The faults of a storm follow from its seed. `STORMS=200 pytest tests/faults/test_storms.py` runs more of them.
"""

import asyncio
import os
from random import Random

import pytest

from extender.sandbox.faults import Fault, Spoiled
from extender.sandbox.nodes import Pace
from extender.sandbox.served import NODES, PODS
from tests.faults.world import World, a_node, run

SEEDS = range(int(os.environ.get("STORMS", "4")))
STEPS = 60

WEATHER = (
    *(Fault(what, "watch", share=0.3) for what in (Spoiled.DROP, Spoiled.END, Spoiled.GONE, Spoiled.STALL)),
    *(
        Fault(what, "watch", share=0.3, after=after)
        for after in (1, 4)
        for what in (Spoiled.TRUNCATE, Spoiled.GARBAGE, Spoiled.DUPLICATE, Spoiled.REPLAY)
    ),
    *(Fault(Spoiled.STATUS, share=0.1, code=code) for code in (500, 503, 504)),
    Fault(Spoiled.STATUS, share=0.1, code=429, retry_after="1"),
    Fault(Spoiled.GONE, "list", share=0.3),
    *(Fault(what, "create", "pods/binding", share=0.3) for what in (Spoiled.LOST, Spoiled.CUT)),
    Fault(Spoiled.DELAY, "create", "pods/binding", share=0.3, seconds=3.0),
    Fault(Spoiled.LOST, "patch", share=0.3),
    Fault(Spoiled.LOST, "delete", share=0.3),
)


async def mishap(world: World, random: Random, step: int) -> None:
    """Now and then a replica, its wire, the store or a node is struck; else wires are mended."""
    match random.randrange(24):
        case 0:
            world.sandbox.store.forget()
        case 1:
            random.choice(world.replicas).cable.cut()
        case 2:
            random.choice(world.replicas).cable.silence()
        case 3:
            await random.choice(world.replicas).kill()
        case 4:
            spec = {"spec": {"unschedulable": random.random() < 0.5}}
            world.sandbox.api.patch(NODES, "", f"n{random.randint(1, 4)}", spec, strategic=True)
        case 5:
            world.sandbox.api.add(a_node(f"late-{step}"))
        case _:
            for replica in world.replicas:
                if random.random() < 0.3:
                    replica.cable.mend()


async def storm(world: World, random: Random) -> None:
    """Sixty steps of seconds each: weather, pods, nodes, partitions, deaths."""
    for step in range(STEPS):
        await asyncio.sleep(random.uniform(0.2, 3.0))
        world.sandbox.faults.clear()
        for fault in random.sample(WEATHER, random.randrange(4)):
            world.sandbox.faults.add(fault)
        for number in range(random.randrange(3)):
            priority = random.choice(("", "", "high"))
            world.pods(f"p{step}-{number}", cpu=f"{random.choice((300, 700, 1500))}m", priorityClassName=priority)
        bound = [pod["metadata"]["name"] for pod in world.sandbox.api.each(PODS) if pod["spec"].get("nodeName")]
        for name in random.sample(bound, min(len(bound), random.randrange(3))):
            world.sandbox.api.delete(PODS, "default", name)
        await mishap(world, random, step)
        while len([each for each in world.replicas if not each.task.done()]) < 2:
            await world.scheduler()


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_every_pod_is_bound_once_and_no_node_is_too_full(seed: int) -> None:
    async def trial(world: World) -> None:
        world.sandbox.api.add(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        )
        world.nodes(4)
        await world.leader()
        await storm(world, Random(seed))
        world.sandbox.faults.clear()
        for replica in world.replicas:
            replica.cable.mend()
        for number in range(20):
            world.sandbox.api.add(a_node(f"spare-{number}"))
        await world.scheduler()
        await world.settled(seconds=900)
        assert world.history.placements() > 30

    run(trial, seed=seed, pace=Pace(stop=0.5))
