"""The handlers of the page What if and of its document."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import msgspec
from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from extender.answers.schema_version import AnswerKind, make_answer
from extender.api.kinds.pod import Pod
from extender.api.kinds.workload import ReplicaSet
from extender.basics.visible_text import make_value_visible
from extender.config.errors import ConfigError
from extender.planning.scenario import ScenarioError
from extender.planning.what_if_report import make_what_if_values
from extender.ui.cluster_document import NO_VALUE, TAINTS_KEY, make_groups
from extender.ui.json_response import make_json_response
from extender.ui.page_source import PageSource
from extender.ui.what_if.answer_view import make_answer_view
from extender.ui.what_if.answers import Answer, BusyError, Report, WhatIfAnswers
from extender.ui.what_if.question import (
    CONFIG_FILE,
    STRATEGIES,
    Question,
    format_command,
    list_workloads,
    read_question,
)

_MAX_SUGGESTIONS: Final = 300
_PROGRESS_SECONDS: Final = 0.5
_ANSWER: Final = b'<div id="result">'
"""The beginning of the answer in the template. Text of objects cannot contain it, since it is escaped."""

log = logging.getLogger("extender.ui")

Render = Callable[..., Response]
"""Renders a template with values: `render(template, status, **values)`."""


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """The handlers. They run in the event loop."""

    source: PageSource
    answers: WhatIfAnswers
    render: Render

    async def show(self, request: Request) -> Response:
        """Show the form, and the answer to the question in the address; meanwhile the progress, if it takes long."""
        question, progress = read_question(request.query_params), [""]
        if question.is_empty:
            return self._render(question)
        task = asyncio.create_task(self._answer_on_page(question, progress))
        await asyncio.wait([task], timeout=_PROGRESS_SECONDS)
        if task.done():
            return task.result()
        parts = self._make_parts(question, task, progress)
        return StreamingResponse(parts, media_type="text/html", headers={"Cache-Control": "no-store"})

    async def _make_parts(
        self, question: Question, task: "asyncio.Task[Response]", progress: Sequence[str]
    ) -> AsyncIterator[bytes]:
        """Yield the page up to the answer, the progress, and the answer. *progress* has one sentence, which changes."""
        try:
            yield bytes(self._render(question).body).partition(_ANSWER)[0]
            while not task.done():
                yield f'<p class="progress" role="status">{progress[0]}</p>\n'.encode()
                await asyncio.wait([task], timeout=_PROGRESS_SECONDS)
            try:
                page = task.result()
            except Exception as error:  # code of plugins may raise anything
                log.exception("Cannot answer a question")
                page = self._render(question, errors=[f"internal error: {type(error).__name__}"])
            yield _ANSWER + bytes(page.body).partition(_ANSWER)[2]
        finally:
            task.cancel()

    async def _answer_on_page(self, question: Question, progress: list[str]) -> Response:
        """Return the page with the answer, or with the errors of the question."""
        command = self._describe_command(question)
        try:
            answer = await self._answer(question, partial(progress.__setitem__, 0))
        except (ScenarioError, ConfigError) as error:
            return self._render(question, 400, errors=_list_errors(error), **command)
        node_names, names = self.source.get_node_names(), frozenset(self.source.get_snapshot().names)
        view = make_answer_view(answer.outcome, node_names, names)
        return self._render(question, answer=view, notes=self._list_notes(question, answer), **command)

    def _list_notes(self, question: Question, answer: Answer) -> list[str]:
        """Return a line for each kind that was not read although the answer depends on it."""
        outcome, drains = answer.outcome, bool(question.drain)
        keys = {pod.pod for pod in outcome.moved} | {pod.pod for pod in outcome.waiting}
        notes = self.source.describe_missing_kinds(keys, preempts=bool(outcome.evicted) and not drains)
        budget_note = self.source.describe_missing_budgets() if drains else ""
        return [*notes, *([budget_note] if budget_note else [])]

    def _render(self, question: Question, status: int = 200, **values: Any) -> Response:
        return self.render(
            "what_if.html",
            status,
            question=asdict(question),
            query_string=question.format_query(),
            strategies=STRATEGIES,
            suggestions=self._list_suggestions(),
            config_file=CONFIG_FILE,
            max_age_seconds=self.answers.max_age_seconds,
            **{"answer": None, "errors": (), "command": "", "configuration": "", **values},
        )

    async def get_document(self, request: Request) -> Response:
        """Return the answer to the question in the address as JSON: `outcome` is what the command line prints."""
        try:
            answer = await self._answer(read_question(request.query_params))
        except (ScenarioError, ConfigError) as error:
            content, status = msgspec.json.encode({"errors": _list_errors(error)}), 400
        else:
            values = {"outcome": make_answer(AnswerKind.WHAT_IF, make_what_if_values(answer.outcome)), **answer.maps}
            content, status = msgspec.json.encode(make_value_visible(values)), 200
        return make_json_response(request, content, status)

    async def _answer(self, question: Question, report: Report = lambda _: None) -> Answer:
        try:
            return await self.answers.answer(question, report)
        except BusyError as error:
            raise HTTPException(503, "Many questions wait for their answers. Try again in a minute.") from error

    def _describe_command(self, question: Question) -> dict[str, Any]:
        """Return the command line and its configuration, unless the question is invalid."""
        try:
            command = format_command(question, self.source.command_options)
            return {"command": command, "configuration": self.answers.make_configuration(question)}
        except ScenarioError:
            return {}

    def _list_suggestions(self) -> Mapping[str, Sequence[str]]:
        snapshot = self.source.get_snapshot()
        groups = make_groups(snapshot.nodes)
        labels = [
            f"{key}={value}"
            for key, group in groups.items()
            for value in group["values"]
            if key != TAINTS_KEY and value != NO_VALUE
        ]
        deployments = {
            key: owner.name
            for key, replica_set in snapshot.objects(ReplicaSet).items()
            for owner in replica_set.metadata.owner_references
            if owner.controller and owner.kind == "Deployment"
        }
        owners = _iterate_owners(self.source.list_pods())
        return {
            "nodes": snapshot.names[:_MAX_SUGGESTIONS],
            "labels": labels[:_MAX_SUGGESTIONS],
            "workloads": list_workloads(owners, deployments, _MAX_SUGGESTIONS),
        }


def _list_errors(error: ScenarioError | ConfigError) -> list[str]:
    return [str(line) for line in error.errors]


def _iterate_owners(pods: Iterable[Pod]) -> Iterable[tuple[str, str, str]]:
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None:
            yield owner.kind, pod.metadata.namespace, owner.name
