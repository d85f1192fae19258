"""Everything goes wrong at random while the cluster changes; when it stops, what we know is what there is."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from extender.client.reflector import ObjectChange, Reflector
from extender.objects.pod import Pod
from tests.unit.client.scripted import CUT, SILENCE, Answer, Asked, Reply, Server, Stream, failure, talking
from tests.unit.client.virtual_time import here, run
from tests.unit.client.worlds import SOURCE, a_list, a_pod, an_event, bookmark, in_stream_failure

SEEDS = range(6)
STORM_SECONDS = 1200.0
CALM_SECONDS = 180.0
PAGE = 4


class Cluster:
    """Pods that come, change and go, and a server that shows them: well, or while it storms badly."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.version = 100
        self.oldest = 100
        self.pods: dict[str, dict[str, Any]] = {}
        self.history: list[tuple[int, dict[str, Any]]] = []
        self.stormy = True

    def change(self) -> None:
        """One pod is made, changed or deleted."""
        self.version += self.random.randint(1, 3)
        name = f"p{self.random.randrange(15)}"
        known = self.pods.get(name)
        if known is None:
            pod, type_ = a_pod(name, self.version, uid=f"{name}-{self.version}"), "ADDED"
            self.pods[name] = pod
        elif self.random.random() < 0.4:
            pod, type_ = {**known, "metadata": {**known["metadata"], "resourceVersion": str(self.version)}}, "DELETED"
            del self.pods[name]
        else:
            pod, type_ = a_pod(name, self.version, uid=known["metadata"]["uid"]), "MODIFIED"
            self.pods[name] = pod
        self.history.append((self.version, an_event(type_, pod)))

    def __call__(self, asked: Asked) -> Answer:
        fault = self._fault()
        if fault is not None:
            return fault
        if "watch" not in asked.query:
            return self._page(asked.query.get("continue", ""))
        since = int(asked.query["resourceVersion"])
        if since < self.oldest:
            return failure(410, "Expired")
        return Stream(self._events(since, float(asked.query["timeoutSeconds"])))  # type: ignore[arg-type]

    def _fault(self) -> Answer | None:
        if not self.stormy or self.random.random() < 0.7:
            return None
        again = {"Retry-After": str(self.random.randint(0, 5))}
        faults: list[Answer] = [CUT, SILENCE, failure(429), failure(429, headers=again), failure(500), failure(403)]
        faults += [
            failure(503, headers=again),
            failure(410, "Expired"),
            Reply(body=b'{"items": [{"met'),
            Reply(502, b"x"),
        ]
        return self.random.choice(faults)

    def _page(self, token: str) -> Answer:
        # A token is the version the list began at and how far it got; it is forgotten when the cluster changes.
        version, _, start = token.partition("/")
        if token and int(version) != self.version:
            return failure(410, "Expired")
        pods = [self.pods[name] for name in sorted(self.pods)]
        here_, rest = pods[int(start or 0) :][:PAGE], pods[int(start or 0) + PAGE :]
        return a_list(self.version, *here_, more=f"{self.version}/{int(start or 0) + PAGE}" if rest else "")

    def _events(self, since: int, seconds: float) -> Iterator[Any]:
        end = here().time() + seconds
        sent: list[Any] = []
        while here().time() < end:
            for version, event in self.history:
                if version > since:
                    since = version
                    sent.append(event)
                    yield event
                    yield from self._mischief(sent)
            if self.random.random() < 0.1:
                yield bookmark(since)
            yield 0.5

    def _mischief(self, sent: Sequence[Any]) -> Iterator[Any]:
        if not self.stormy or self.random.random() < 0.8:
            return
        bad = [[CUT], [SILENCE], [b'{"type":"MODIF', CUT], [b"{]\n"], [in_stream_failure(410, "Expired")]]
        bad += [[in_stream_failure(500)], [self.random.choice(sent)], [sent[-1], sent[0]], [b"\n"], [70.0]]
        yield from self.random.choice(bad)


class Mirror:
    """What was told, put together; complains about what does not follow from what was told before."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.told = 0

    def __call__(self, changes: Sequence[ObjectChange[Pod]]) -> None:
        for change in changes:
            self.told += 1
            name = (change.new or change.old or Pod()).metadata.name
            known = self.pods.get(name)
            if change.new is None:
                assert known is not None
                assert change.old is not None
                assert change.old.metadata.uid == known.metadata.uid
                del self.pods[name]
                continue
            assert change.old is known
            if known is not None:
                assert known.metadata.uid == change.new.metadata.uid
                assert int(known.metadata.resource_version) < int(change.new.metadata.resource_version)
            self.pods[name] = change.new


def versions(pods: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {name: (pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) for name, pod in pods.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_what_is_known_is_what_there_is(seed: int) -> None:
    async def main() -> None:
        random = Random(seed)
        cluster, mirror = Cluster(random), Mirror()
        async with Server(cluster) as server, talking(server, chance=random.random) as transport:
            reflector = Reflector(transport, SOURCE, mirror, here(), chance=random.random)
            task = asyncio.create_task(reflector.run())
            end = here().time() + STORM_SECONDS
            while here().time() < end:
                await asyncio.sleep(random.random() * 4)
                cluster.change()
                if random.random() < 0.05:
                    cluster.oldest = cluster.version
            cluster.stormy = False
            await asyncio.sleep(CALM_SECONDS)
            assert not task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            known = {name: (pod.metadata.uid, pod.metadata.resource_version) for name, pod in mirror.pods.items()}
            assert known == versions(cluster.pods)
            assert (reflector.synced.is_set(), reflector.trouble) == (True, "")
            assert reflector.counts.failures + reflector.counts.gone + reflector.counts.malformed > 5
            assert mirror.told > 100
            # Failures do not turn into a storm of our own.
            assert len(server.asked) < 800

    run(main())
