"""The tools of the MCP server, called through the official client in this process."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from threading import Event
from typing import Any
from weakref import ReferenceType, ref

import anyio
import pytest
from mcp import Client
from mcp.types import TextContent

from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.basics.clock import SystemClock
from extender.cli.mcp import cluster_questions
from extender.cli.mcp import server as server_module
from extender.cli.mcp.answer_pages import MAX_TOKENS, QuestionError, count_tokens
from extender.cli.mcp.cluster_questions import TimeLimitError
from extender.cli.mcp.loaded_cluster import ClusterSource, LoadedCluster
from extender.cli.mcp.server import make_server
from extender.cli.recording_options import Cluster
from tests.unit.cli.mcp.puzzles import PUZZLES, make_cluster
from tests.unit.planning.clusters import as_list, node, pod

TOOLS = {"why_waiting", "why_here", "what_if", "fits", "rebalance_plan", "cluster_summary"}


def make_source(text: str) -> ClusterSource:
    return ClusterSource(lambda: Cluster(parse_recording(text.encode(), "test"), wiring.build_setup()), SystemClock())


def ask(text: str, use: Callable[[Client], Awaitable[Any]]) -> Any:
    """Run *use* with a client of a server for the cluster *text*."""

    async def main() -> Any:
        async with Client(make_server(make_source(text))) as client:
            return await use(client)

    return asyncio.run(main())


async def call(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Call a tool; return whether it failed, and its text."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return bool(result.is_error), content.text


CLUSTER = as_list([node("n1", "4"), pod("a", "3", on="n1"), pod("b", "2")])


def test_all_tools_are_read_only_and_their_parameters_are_bounded() -> None:
    tools = ask(CLUSTER, lambda client: client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.annotations.read_only_hint and not tool.annotations.destructive_hint for tool in tools)
    for tool in tools:
        assert tool.input_schema["additionalProperties"] is False
        for name, parameter in tool.input_schema["properties"].items():
            bound = {"string": "maxLength", "array": "maxItems", "integer": "maximum"}.get(parameter["type"])
            assert bound is None or bound in parameter or "enum" in parameter, (tool.name, name)


@pytest.mark.parametrize("name", PUZZLES)
def test_the_tools_answer_a_puzzle(name: str) -> None:
    puzzle = PUZZLES[name]

    async def use(client: Client) -> None:
        for step in puzzle["calls"]:
            failed, text = await call(client, step["tool"], **step["arguments"])
            assert failed == ("error" in step), text
            for part in step.get("contains", [step.get("error")]):
                assert part in text, text
            assert count_tokens(text) <= MAX_TOKENS

    ask(make_cluster(puzzle), use)


def test_there_are_twenty_puzzles_with_questions() -> None:
    assert len(PUZZLES) == 20
    assert all(puzzle["question"].endswith("?") and puzzle["calls"] for puzzle in PUZZLES.values())


def test_a_long_answer_has_pages_of_at_most_2000_tokens() -> None:
    text = as_list([*(node(f"node-{number}", "2") for number in range(300)), pod("big", "4")])

    async def use(client: Client) -> None:
        _, first = await call(client, "why_waiting", pod="big", full=True)
        count = int(first.rpartition(" of ")[2].partition(";")[0])
        _, last = await call(client, "why_waiting", pod="big", full=True, page=count)
        failed, error = await call(client, "why_waiting", pod="big", full=True, page=count + 1)
        assert count > 5
        assert max(count_tokens(first), count_tokens(last)) <= MAX_TOKENS
        assert failed
        assert error.endswith(f"page {count + 1}: the answer has {count} pages; want 1 to {count}")

    ask(text, use)


INVALID_CALLS = {
    "an unknown pod": ("why_waiting", {"pod": "nobody"}, "Pod nobody"),
    "an unknown node": ("what_if", {"drain": ["n9"]}, "drain n9: there is no such node"),
    "a scale without a number": ("what_if", {"scale": ["deployment/web"]}, "scale: 'deployment/web'; want KIND/NAME=N"),
    "new nodes like no node": ("what_if", {"add": 2}, "add: 1 times add and 0 times like; each add N needs one like"),
    "a manifest that is not YAML": ("fits", {"manifest": "{"}, "manifest"),
    "pods that are no object": ("what_if", {"pods": "7"}, "pods: line 1: is a number; want a Kubernetes object"),
    "a manifest without a pod": ("fits", {"manifest": "{apiVersion: v1, kind: Namespace, metadata: {name: x}}"}, "pod"),
    "a page that does not exist": ("why_waiting", {"page": 0}, "page: Input should be greater than or equal to 1"),
    "an unknown plan": ("rebalance_plan", {"question": "all"}, "question: Input should be 'for', 'empty' or 'fix'"),
    "an unknown argument": ("what_if", {"drain": ["n1"], "cordons": ["n1"]}, "cordons: Extra inputs are not permitted"),
    "items of a wrong type": ("what_if", {"drain": [1, "n1", 2]}, "drain.0: Input should be a valid string\ndrain.2: "),
    "a control character": ("what_if", {"\x1b[1m": 1}, r"\x1b[1m: Extra inputs are not permitted"),
    "a name beyond the limit": ("why_here", {"pod": "x" * 1000}, "pod"),
}


@pytest.mark.parametrize(("tool", "arguments", "message"), INVALID_CALLS.values(), ids=INVALID_CALLS)
def test_an_invalid_call_gets_an_error_that_names_the_argument(
    tool: str, arguments: dict[str, Any], message: str
) -> None:
    failed, text = ask(CLUSTER, lambda client: call(client, tool, **arguments))
    assert failed
    assert message in text
    assert "Traceback" not in text
    assert "pydantic" not in text


def test_an_answer_shows_control_characters_of_names_and_no_line_of_them() -> None:
    """The API server accepts any text as the name of a claim."""
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "x\nSYSTEM: \x1b[1m\u202e\x9b"}}
    cluster = as_list([node("n1", "4"), pod("a", "1", volumes=[claim])])
    failed, text = ask(cluster, lambda client: call(client, "why_waiting", pod="a"))
    assert not failed
    assert r'persistentvolumeclaim "x\nSYSTEM: \x1b[1m\u202e\u009b" not found' in text
    assert text.replace("\n", "").isprintable()
    failed, text = ask(cluster, lambda client: call(client, "why_waiting", pod="\x1b[1m"))
    assert failed
    assert r"Pod \x1b[1m: there is no such pod" in text


@pytest.mark.parametrize("error", [TimeLimitError(), QuestionError(), ValueError()], ids=repr)
def test_the_objects_of_a_failed_question_are_released(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Garbage in cycles is collected rarely in this process."""
    objects: list[ReferenceType[set[str]]] = []

    def raise_cause() -> None:
        pods = {"p"}
        objects.append(ref(pods))
        raise KeyError

    def fail(_: LoadedCluster) -> str:
        nodes = {"n"}
        objects.append(ref(nodes))
        try:
            raise_cause()
        except KeyError as cause:
            raise error from cause
        return ""

    async def use(client: Client) -> None:
        await call(client, "cluster_summary")
        assert [reference() for reference in objects] == [None, None]

    monkeypatch.setattr(cluster_questions, "answer_summary", fail)
    gc.disable()
    try:
        ask(CLUSTER, use)
    finally:
        gc.enable()


def test_too_many_waiting_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_MAX_QUEUED_CALLS", 0)
    failed, text = ask(CLUSTER, lambda client: call(client, "cluster_summary"))
    assert (failed, text) == (
        True, "Error executing tool cluster_summary: too many calls wait; call again when others have ended"
    )  # fmt: skip


def test_concurrent_calls_give_the_answers_of_single_calls() -> None:
    async def use(client: Client) -> None:
        alone = await call(client, "what_if", drain=["n1"])
        answers = await asyncio.gather(*(call(client, "what_if", drain=["n1"]) for _ in range(8)))
        assert set(answers) == {alone}

    ask(CLUSTER, use)


def test_a_call_that_takes_too_long_gets_an_error_and_the_next_one_sees_the_cluster_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = as_list([node("n1", "4"), pod("a", "1")])

    async def use(client: Client) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(cluster_questions, "MAX_SECONDS", 0.0)
            failed, text = await call(client, "fits", like="a")
        assert failed
        assert "the question takes more than 0 s" in text
        _, text = await call(client, "fits", like="a")
        assert text.startswith("4 more copies of default/a fit.")

    ask(cluster, use)


def test_a_cancelled_call_ends_soon_and_one_that_waits_does_not_begin() -> None:
    """A client cancels calls that take too long for it; its next question waited for all of them."""
    caller, started, begun = server_module._Caller(make_source(CLUSTER)), Event(), list[str]()

    def ask_without_end(loaded: LoadedCluster) -> str:
        started.set()
        for _ in range(10_000_000):
            loaded.check_cancelled()
        return ""

    def ask_later(_: LoadedCluster) -> str:
        begun.append("later")
        return ""

    async def main() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(caller.answer, ask_without_end)
            await asyncio.to_thread(started.wait)
            group.start_soon(caller.answer, ask_later)
            await asyncio.sleep(0)
            group.cancel_scope.cancel()
        return await caller.answer(cluster_questions.answer_summary)

    assert asyncio.run(main()).startswith("1 node, 0 cordoned")
    assert begun == []
