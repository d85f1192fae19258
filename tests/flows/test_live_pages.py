"""The pages of `extender serve --ui` for a live cluster: authentication and the pages of the scheduler."""

import asyncio
from pathlib import Path

import pytest

from tests.flows.test_live_extender import live_extender, make_pod


@pytest.mark.parametrize(("flags", "queue_status"), [((), 404), (("--standalone",), 200)])
def test_an_authorized_caller_gets_the_pages_of_the_watched_cluster(
    tmp_path: Path, flags: tuple[str, ...], queue_status: int
) -> None:
    async def main() -> None:
        async with live_extender(tmp_path, "--ui", *flags) as extender:
            assert (await extender.get("/ui/"))[0] == 403
            extender.api_server.api.create_from_manifest(make_pod("large", cpu="64"))

            async def is_explained() -> bool:
                return "fits on none of 2 nodes" in (await extender.get("/ui/pods/default/large", "token"))[1]

            await extender.wait_until(is_explained)
            assert (await extender.get("/ui/queue", "token"))[0] == queue_status
            assert (await extender.get("/metrics", "token"))[0] == 200

    asyncio.run(main())


def test_without_the_flag_there_are_no_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            assert (await extender.get("/ui/", "token"))[0] == 404

    asyncio.run(main())
