"""The handlers of the page What if and of its document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec
from fastapi import Request, Response
from starlette.exceptions import HTTPException

from extender.answers.schema_version import AnswerKind, make_answer
from extender.api.kinds.pod import Pod
from extender.api.kinds.workload import ReplicaSet
from extender.basics.visible_text import make_value_visible
from extender.config.errors import ConfigError
from extender.planning.scenario import ScenarioError
from extender.planning.what_if_report import make_what_if_values
from extender.ui.cluster_document import TAINTS_KEY, make_groups
from extender.ui.page_source import PageSource
from extender.ui.what_if.answer_view import make_answer_view
from extender.ui.what_if.answers import Answer, BusyError, WhatIfAnswers
from extender.ui.what_if.question import (
    CONFIG_FILE,
    STRATEGIES,
    Question,
    format_command,
    list_workloads,
    read_question,
)

_MAX_SUGGESTIONS: Final = 300

Render = Callable[..., Response]
"""Renders a template with values: `render(template, status, **values)`."""


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """The handlers. They run in the event loop.

    Attributes:
        source: the cluster.
        answers: answers the questions.
        render: renders a page.
    """

    source: PageSource
    answers: WhatIfAnswers
    render: Render

    async def show(self, request: Request) -> Response:
        """Show the form, and the answer to the question in the address."""
        question = read_question(request.query_params)
        values: dict[str, Any] = {"answer": None, "errors": (), "command": "", "configuration": ""}
        status = 200
        if not question.is_empty:
            try:
                answer = await self._answer(question)
                values["answer"] = make_answer_view(
                    answer.outcome, self.source.get_node_names(), frozenset(self.source.get_snapshot().names)
                )
            except (ScenarioError, ConfigError) as error:
                status, values["errors"] = 400, _list_errors(error)
            values |= self._describe_command(question)
        return self.render(
            "what_if.html",
            status,
            question=asdict(question),
            query_string=question.format_query(),
            strategies=STRATEGIES,
            suggestions=self._list_suggestions(),
            config_file=CONFIG_FILE,
            is_live=self.answers.max_age_seconds != float("inf"),
            **values,
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
        return Response(content, status, media_type="application/json", headers={"Cache-Control": "no-store"})

    async def _answer(self, question: Question) -> Answer:
        try:
            return await self.answers.answer(question)
        except BusyError as error:
            raise HTTPException(503, "Many questions wait for their answers. Try again in a minute.") from error

    def _describe_command(self, question: Question) -> dict[str, str]:
        """Return the command line and its configuration, unless the question is invalid."""
        try:
            command = format_command(question, self.source.command_options)
            return {"command": command, "configuration": self.answers.make_configuration(question)}
        except ScenarioError:
            return {}

    def _list_suggestions(self) -> Mapping[str, Sequence[str]]:
        snapshot = self.source.get_snapshot()
        groups = make_groups(snapshot.nodes)
        labels = [f"{key}={value}" for key, group in groups.items() if key != TAINTS_KEY for value in group["values"]]
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
