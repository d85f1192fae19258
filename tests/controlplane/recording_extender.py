"""A small HTTP extender with all verbs that records its requests."""

import json
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any, Final, Self

from tests.controlplane.api_client import ApiClient, JsonObject

_TIMEOUT: Final = 20.0
MAX_SCORE: Final = 10
"""The highest score that it returns."""


class RecordingExtender:
    """An HTTP extender that runs in a `with` block.

    It rejects nodes labelled `wanted: no`, gives its highest score to the last node by name, accepts all victims, and
    binds.

    Args:
        api: the client for bindings.

    Attributes:
        requests: verb and body of each request, in order.
        may_respond: while it is cleared, requests wait.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self.requests: list[tuple[str, Any]] = []
        self._request_received = Condition()
        self.may_respond = Event()
        self.may_respond.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The URL prefix."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.may_respond.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait_for_requests(self, count: int) -> None:
        """Wait for *count* requests."""
        with self._request_received:
            assert self._request_received.wait_for(lambda: len(self.requests) >= count, _TIMEOUT), "too few requests"

    def configuration_entry(self, *verbs: str, by_names: bool) -> JsonObject:
        """Return the extender's entry in a configuration, with these verbs: filter, prioritize, preempt, bind."""
        entry: JsonObject = {"urlPrefix": self.url, "nodeCacheCapable": by_names, "httpTimeout": "20s", "weight": 3}
        return entry | {f"{verb}Verb": verb for verb in verbs}

    def record(self, verb: str, body: Any) -> None:
        """Record a request."""
        with self._request_received:
            self.requests.append((verb, body))
            self._request_received.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        verb_functions: dict[str, Callable[[Any], Any]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }
        extender = self

        class Handler(BaseHTTPRequestHandler):
            """Handles a request."""

            def do_POST(self) -> None:
                verb = self.path.removeprefix("/")
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                extender.record(verb, body)
                extender.may_respond.wait()
                response = json.dumps(verb_functions[verb](body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(response)))
                self.end_headers()
                with suppress(ConnectionError):  # the client may have ended
                    self.wfile.write(response)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler

    def _filter(self, body: Any) -> Any:
        if body["NodeNames"] is not None:
            unwanted_names = {node["metadata"]["name"] for node in self._nodes() if _is_unwanted(node)}
            accepted = [name for name in body["NodeNames"] if name not in unwanted_names]
            rejected = [name for name in body["NodeNames"] if name in unwanted_names]
            return {"NodeNames": accepted, "FailedNodes": dict.fromkeys(rejected, "not wanted")}
        items = body["Nodes"]["items"]
        rejected = [node["metadata"]["name"] for node in items if _is_unwanted(node)]
        accepted = [node for node in items if not _is_unwanted(node)]
        return {"Nodes": {"items": accepted}, "FailedNodes": dict.fromkeys(rejected, "not wanted")}

    def _nodes(self) -> list[JsonObject]:
        return list(json.loads(self._api.list("Node"))["items"])

    def _prioritize(self, body: Any) -> Any:
        names = body["NodeNames"] or [node["metadata"]["name"] for node in body["Nodes"]["items"]]
        return [{"Host": name, "Score": MAX_SCORE if name == max(names) else 0} for name in names]

    def _preempt(self, body: Any) -> Any:
        if body["NodeNameToMetaVictims"] is not None:
            return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}
        meta_victims = {
            node: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
                "NumPDBViolations": victims["NumPDBViolations"],
            }
            for node, victims in body["NodeNameToVictims"].items()
        }
        return {"NodeNameToMetaVictims": meta_victims}

    def _bind(self, body: Any) -> Any:
        target = {"apiVersion": "v1", "kind": "Node", "name": body["Node"]}
        meta = {"name": body["PodName"], "namespace": body["PodNamespace"], "uid": body["PodUID"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        self._api.call("POST", f"/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding", binding)
        return {"Error": ""}


def _is_unwanted(node: JsonObject) -> bool:
    return bool(node["metadata"].get("labels", {}).get("wanted") == "no")
