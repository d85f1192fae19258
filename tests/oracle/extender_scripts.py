"""Plays the scripts of HTTP extenders in the process, as the oracle does: `cycles.extenders` of a scenario."""

import json
from typing import Any

from extender.client.extender_transport import ExtenderError

Script = dict[str, Any]


class ScriptedTransport:
    """Answers the calls of one extender.

    Args:
        url: the extender's URL.
        script: the answers by verb. All of them may have `code`, an HTTP status instead of an answer. The filter verb
            answers with the requested nodes except `drop`, with the names `more`, and with the fields of `answer`. The
            prioritize verb answers with `scores`. The preempt verb answers with the offered nodes except `drop`. The
            victims of a node are its first `keep` ones, or its last ones with `reverse`, then those of `more`.
    """

    def __init__(self, url: str, script: Script) -> None:
        self._url, self._script = url, script

    async def post(self, verb: str, body: bytes) -> bytes:
        """Return the answer of a verb.

        Raises:
            ExtenderError: the script has an HTTP status.
        """
        script = self._script.get(verb, {})
        if script.get("code"):
            raise ExtenderError(f"failed {verb} with extender at URL {self._url}/{verb}, code {script['code']}")
        request = json.loads(body)
        match verb:
            case "filter":
                answer = _filter(script, request)
            case "preempt":
                answer = _preempt(script, request)
            case _:
                answer = script.get("scores")
        return json.dumps(answer).encode()


def _filter(script: Script, request: dict[str, Any]) -> dict[str, Any]:
    dropped = script.get("drop", ())
    answer = dict(script.get("answer", {}))
    if request["NodeNames"] is not None:
        names = [name for name in request["NodeNames"] if name not in dropped]
        return {**answer, "NodeNames": [*script.get("more", ()), *names]}
    nodes = [node for node in request["Nodes"]["items"] if node["metadata"]["name"] not in dropped]
    return {**answer, "Nodes": {"metadata": {}, "items": nodes}}


def _preempt(script: Script, request: dict[str, Any]) -> dict[str, Any]:
    accepted = {}
    for node, victims in (request["NodeNameToMetaVictims"] or request["NodeNameToVictims"] or {}).items():
        if node in script.get("drop", ()):
            continue
        uids = [pod["UID"] if "UID" in pod else pod["metadata"]["uid"] for pod in victims["Pods"]]
        if script.get("reverse"):
            uids.reverse()
        uids = [*uids[: script.get("keep", {}).get(node)], *script.get("more", {}).get(node, ())]
        violations = script.get("violations", {}).get(node, victims["NumPDBViolations"])
        accepted[node] = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
    return {"NodeNameToMetaVictims": accepted}
