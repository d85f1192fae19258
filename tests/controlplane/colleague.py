"""A small HTTP extender that writes down what it is sent; it filters, scores, looks at victims and binds."""

import json
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any, Final, Self

from tests.controlplane.api import Api, Thing

_PATIENCE: Final = 20.0
BEST: Final = 10
"""The highest score it gives."""


class Colleague:
    """An extender at work; use it in a `with` block.

    It refuses nodes labelled `wanted: no`, gives its highest score to the last node of the alphabet, lets any victims
    go, and binds.

    Args:
        api: for bindings.

    Attributes:
        asked: the requests in the order they came: verb, and body.
        open: cleared, it keeps whoever asks waiting.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self.asked: list[tuple[str, Any]] = []
        self._came = Condition()
        self.open = Event()
        self.open.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.open.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait_for(self, count: int) -> None:
        """Until it was asked so often."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.asked) >= count, _PATIENCE), "nobody asked"

    def configured(self, *verbs: str, cached: bool) -> Thing:
        """Its entry in a configuration, with these verbs: filter, prioritize, preempt, bind."""
        entry: Thing = {"urlPrefix": self.url, "nodeCacheCapable": cached, "httpTimeout": "20s", "weight": 3}
        return entry | {f"{verb}Verb": verb for verb in verbs}

    def note(self, verb: str, body: Any) -> None:
        """Somebody asks."""
        with self._came:
            self.asked.append((verb, body))
            self._came.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answers: dict[str, Callable[[Any], Any]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }
        colleague = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self) -> None:
                verb = self.path.removeprefix("/")
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                colleague.note(verb, body)
                colleague.open.wait()
                answer = json.dumps(answers[verb](body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                with suppress(ConnectionError):  # who asked was ended meanwhile
                    self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        return Handler

    def _filter(self, body: Any) -> Any:
        if body["NodeNames"] is not None:
            unwanted = {each["metadata"]["name"] for each in self._nodes() if _is_unwanted(each)}
            kept = [name for name in body["NodeNames"] if name not in unwanted]
            refused = [name for name in body["NodeNames"] if name in unwanted]
            return {"NodeNames": kept, "FailedNodes": dict.fromkeys(refused, "not wanted")}
        items = body["Nodes"]["items"]
        refused = [each["metadata"]["name"] for each in items if _is_unwanted(each)]
        kept = [each for each in items if not _is_unwanted(each)]
        return {"Nodes": {"items": kept}, "FailedNodes": dict.fromkeys(refused, "not wanted")}

    def _nodes(self) -> list[Thing]:
        return list(json.loads(self._api.list("Node"))["items"])

    def _prioritize(self, body: Any) -> Any:
        names = body["NodeNames"] or [each["metadata"]["name"] for each in body["Nodes"]["items"]]
        return [{"Host": name, "Score": BEST if name == max(names) else 0} for name in names]

    def _preempt(self, body: Any) -> Any:
        if body["NodeNameToMetaVictims"] is not None:
            return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}
        told = {
            node: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
                "NumPDBViolations": victims["NumPDBViolations"],
            }
            for node, victims in body["NodeNameToVictims"].items()
        }
        return {"NodeNameToMetaVictims": told}

    def _bind(self, body: Any) -> Any:
        target = {"apiVersion": "v1", "kind": "Node", "name": body["Node"]}
        meta = {"name": body["PodName"], "namespace": body["PodNamespace"], "uid": body["PodUID"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        self._api.call("POST", f"/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding", binding)
        return {"Error": ""}


def _is_unwanted(node: Thing) -> bool:
    return bool(node["metadata"].get("labels", {}).get("wanted") == "no")
