"""Reviews of callers by an API server that does not answer them: `extender serve` binds and schedules nevertheless."""

import asyncio
from pathlib import Path

import pytest

from extender.app import delegated_auth
from tests.faulty_apiserver import Fault, FaultKind
from tests.flows.test_live_extender import SECONDS, go, live_extender, make_pod

HOUR = 3600.0
HANGING_REVIEWS = Fault(FaultKind.DELAY, "create", "tokenreviews", delay_seconds=HOUR)


@pytest.mark.parametrize("flags", [(), ("--standalone",)], ids=["verb bind", "standalone"])
def test_callers_with_unknown_tokens_delay_no_binding(
    flags: tuple[str, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook of the API server that authenticates tokens may hang, and everyone may send a token."""
    monkeypatch.setattr(delegated_auth, "_TIMEOUT_SECONDS", HOUR)

    async def main() -> None:
        async with live_extender(tmp_path, *flags, faults=(HANGING_REVIEWS,)) as extender:
            answers = asyncio.Event()
            monkeypatch.setattr(extender.api_server._app, "_sleep", lambda _: answers.wait())
            callers = [asyncio.create_task(extender.get("/metrics", bearer=f"token {number}")) for number in range(65)]
            done, waiting = await asyncio.wait(callers, return_when=asyncio.FIRST_COMPLETED)
            assert [caller.result()[0] for caller in done] == [401]
            assert "64 reviews are pending" in [getattr(record, "err", "") for record in caplog.records]
            pod = extender.api_server.api.create_from_manifest(make_pod("web"))

            async def is_bound() -> bool:
                return bool(extender.pod("web")["spec"].get("nodeName") == "n1")

            try:
                async with asyncio.timeout(SECONDS):
                    assert flags or await extender.bind(pod, "n1") == ""
                await extender.wait_until(is_bound)
                assert [caller for caller in waiting if caller.done()] == []
            finally:
                answers.set()
            assert {(await caller)[0] for caller in waiting} == {200}

    go(main())
