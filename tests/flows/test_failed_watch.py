"""`extender serve` while a watch fails: the verbs do not decide on old data."""

from pathlib import Path

import pytest

from extender.app import informers
from tests.faulty_apiserver import Fault, FaultKind
from tests.flows.test_live_extender import go, live_extender, make_pod


def test_the_verbs_return_errors_while_a_watch_fails_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kube-scheduler then decides without the extender if it is ignorable. Else it tries again."""
    monkeypatch.setattr(informers, "_STALE_AFTER_SECONDS", 0.0)
    watch_fault = Fault(kind=FaultKind.STATUS, verb="watch", resource="pods", code=429)

    async def main() -> None:
        async with live_extender(tmp_path, faults=(watch_fault,), ready=False) as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web"))

            async def is_refused() -> bool:
                return bool("out of date" in (await extender.filter(pod, "n1"))["Error"])

            await extender.wait_until(is_refused)
            outdated = "the cache of the extender is out of date: Pod cannot be watched (pods: "
            result = await extender.filter(pod, "n1")
            assert (result["NodeNames"], result["Error"][: len(outdated)]) == (None, outdated)
            assert (await extender.bind(pod, "n1")).startswith(outdated)
            status, line = await extender.post("/prioritize", {"Pod": pod, "NodeNames": ["n1"]})
            assert (status, line.startswith(outdated)) == (503, True)
            assert (await extender.get("/readyz"))[0] == 500
            extender.api_server.faults.clear()
            await extender.wait_until(extender.is_ready)
            assert (await extender.filter(pod, "n1"))["NodeNames"] == ["n1"]

    go(main())
