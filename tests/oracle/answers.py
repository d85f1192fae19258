"""Asks the oracle and extender what they decide about a scenario, and compares both answers."""

import json
import re
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from extender.analysis.explanation.explain_json import make_explanation_values
from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods
from extender.analysis.pod_group_outcome import PodGroupOutcome, PodGroupSimulator
from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.pod_groups import get_pod_group_key
from extender.cli.recording_options import load_setup_for_recording, parse_gates_of_release
from extender.cycle.explain_pod import explain_pod
from extender.cycle.pod_group.hierarchy import find_root_key, list_keys_of_tree
from tests.oracle.bindings import ask_bindings, normalize_bindings, uses_claims
from tests.oracle.cycles import ask_cycles, list_deferred_resizes
from tests.oracle.hints import ask_hints
from tests.parity import golden

Answers = dict[str, Any]
"""The results by `namespace/name`: of pods in `pods`, of pod groups in `podGroups`; for each change in `events`.

In `bindings` are the writes of PreBind by pod and node; recorded results have none. For a scenario with `cycles`, only
`cycles` has results: the outcomes of whole scheduling cycles by pod.
"""

_SKIP: Final = "QueueSkip;"
_DOMAIN_ERROR: Final = re.compile(r"(cannot determine domain for already scheduled pods: ).*")
_ERROR_IN_PREEMPTION: Final = re.compile(r'preemption: (\[?running "|\[expected at least one victim).*', re.DOTALL)


class OracleError(Exception):
    """The oracle cannot evaluate a scenario."""


class OracleEndedError(Exception):
    """The oracle ended unexpectedly."""


class Oracle:
    """A running oracle, which answers one scenario after another.

    Args:
        program: the built oracle of a Kubernetes minor.
    """

    def __init__(self, program: Path) -> None:
        self._child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, scenario: dict[str, Any]) -> None:
        """Send a scenario; the oracle evaluates it while the caller does something else."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(scenario).encode() + b"\n")
        self._child.stdin.flush()

    def receive(self) -> Answers:
        """Return the answer to the oldest scenario without one.

        Raises:
            OracleError: the oracle cannot evaluate the scenario.
            OracleEndedError: the oracle ended.
        """
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise OracleEndedError(f"the oracle ended with status {self._child.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise OracleError(answer["error"])
        pods = answer.pop("pods") or {}
        return {"pods": pods, "podGroups": {}, "events": [], "bindings": {}, **answer}

    def ask(self, scenario: dict[str, Any]) -> Answers:
        """Return the answer to a scenario.

        Raises:
            OracleError: the oracle cannot evaluate the scenario.
            OracleEndedError: the oracle ended.
        """
        self.send(scenario)
        return self.receive()

    def close(self) -> None:
        """End the oracle."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.stdout.close()
        self._child.wait()


@contextmanager
def running_oracle(program: Path) -> Iterator[Oracle]:
    """Run an oracle inside the block."""
    oracle = Oracle(program)
    try:
        yield oracle
    finally:
        oracle.close()


class _FirstOfTies(Random):
    """Selects the first of several equal choices, as the oracle does for pod groups."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0

    def choice(self, seq: Any) -> Any:
        return seq[0]


def ask_extender(scenario: dict[str, Any], version: str) -> Answers:
    """Return the results of extender for a Kubernetes minor such as `1.36`.

    Raises:
        InputError: extender refuses the scenario.
    """
    gates = parse_gates_of_release([version], [f"{name}={on}" for name, on in scenario.get("featureGates", {}).items()])
    recording = parse_recording(json.dumps(scenario).encode(), "scenario")
    setup = load_setup_for_recording("", recording, gates)
    if "cycles" in scenario:
        cache = load_cache(recording, setup.gates, setup.profiles)
        cycles = ask_cycles(scenario["cycles"], setup, cache, _FirstOfTies())
        return {"pods": {}, "podGroups": {}, "events": [], "bindings": {}, "cycles": cycles}
    profile, runtime = setup.first_profile, wiring.make_runtime()
    cache = load_cache(recording, setup.gates, (profile.scheduler_name,))
    nominate_pending_pods(cache, profile, runtime)
    snapshot = cache.snapshot()
    simulator = PodGroupSimulator(cache, {profile.scheduler_name: profile}, runtime, _FirstOfTies())
    answers: Answers = {"pods": {}, "podGroups": {}, "bindings": {}}
    pods = [*list_pending_pods(cache, (profile.scheduler_name,)), *list_deferred_resizes(cache, profile)]
    for pod in pods:
        values = make_explanation_values(explain_pod(snapshot.make_pod_info(pod), snapshot, profile, runtime))
        if pod.spec.node_name:
            values["scores"], values["best"] = {}, values["feasible"]  # its own node is not scored
            if (values["filterMessage"] or "").startswith(("running PreScore", "running Score")):
                values["filterMessage"] = values["message"] = None
        group = get_pod_group_key(pod)
        if "GenericWorkload" not in profile.gates or group is None or pod.spec.node_name:
            answers["pods"][pod.key] = values
            if uses_claims(pod) and not pod.spec.node_name:
                answers["bindings"][pod.key] = ask_bindings(pod, values["feasible"], cache, profile, runtime)
        else:
            outcome = simulator.get_outcome(pod) if values["preEnqueue"] is None else None
            root = find_root_key(group, snapshot, profile.gates)
            key = f"composite {root.object_key}" if root.is_composite else root.object_key
            _add_member(answers["podGroups"].setdefault(key, _make_group_values()), pod, values["preEnqueue"], outcome)
            if root.is_composite and outcome is not None:
                answers["podGroups"][key]["conditions"] = {
                    leaf: outcome.decision.pod_group_statuses.get(leaf, outcome.decision.status).message
                    for leaf in list_keys_of_tree(group, snapshot, profile.gates)
                }
    _keep_written_values(answers["podGroups"], scenario["items"])
    answers["events"] = ask_hints(scenario.get("events", ()), cache, profile, gates, pods)
    return answers


def _keep_written_values(groups: dict[str, Any], items: list[dict[str, Any]]) -> None:
    """Remove what kube-scheduler does not write.

    That is the deletion of a terminating pod, the condition of a missing group, and the reason of a group that is not
    in the queue because of one member.
    """
    terminating = {_get_key(item) for item in items if "deletionTimestamp" in item["metadata"]}
    existing = {_get_key(item) for item in items if item["kind"] == "PodGroup"}
    for key, group in groups.items():
        group["victims"] = [pod for pod in group["victims"] if pod not in terminating]
        if (group["message"] or "").startswith("held by pod "):
            group["conditions"] = {}
        if key not in existing:
            group["message"] = None
        for result in (group, *group["members"].values()):
            if (result["message"] or "").startswith("held by pod "):
                result["message"] = None


def _get_key(item: dict[str, Any]) -> str:
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def _make_group_values() -> dict[str, Any]:
    outcome: dict[str, Any] = {"scheduled": False, "waitsForPreemption": False, "message": None, "victims": []}
    return {**outcome, "members": {}, "conditions": {}}


def _add_member(
    group: dict[str, Any], pod: Pod, pre_enqueue: dict[str, Any] | None, outcome: PodGroupOutcome | None
) -> None:
    """Add a member, with the outcome for its group, to the values of the group."""
    values = outcome.to_values() if outcome is not None else {"node": None, "podMessage": None}
    group["members"][pod.key] = {
        "preEnqueue": pre_enqueue,
        "node": values["node"] or "",
        "message": values["podMessage"],
    }
    if outcome is not None:
        group.update({key: values[key] for key in ("scheduled", "waitsForPreemption", "message", "victims")})


def find_answer_differences(want: Answers, got: Answers) -> list[str]:
    """Return one line per difference; the order of reasons and the text of internal errors have no meaning."""
    want_groups, got_groups = (_normalize_groups(answers.get("podGroups", {})) for answers in (want, got))
    members = (group["members"] for group in want.get("podGroups", {}).values())
    results = [*want["pods"].items(), *(item for by_pod in members for item in by_pod.items())]
    held = {key for key, result in results if result.get("preEnqueue")}
    want_events, got_events = (_normalize_events(answers.get("events", ()), held) for answers in (want, got))
    differences = [
        *golden.find_differences(_normalize(want["pods"]), _normalize(got["pods"])),
        *golden.find_differences(want_groups, got_groups),
        *golden.find_differences(want_events, got_events),
        *golden.find_differences(_normalize(want.get("cycles", {})), _normalize(got.get("cycles", {}))),
    ]
    if "bindings" in want:
        want_bindings, got_bindings = (normalize_bindings(answers["bindings"]) for answers in (want, got))
        differences += golden.find_differences(want_bindings, got_bindings)
    return differences


def _normalize_events(events: Sequence[dict[str, Any]], held: Collection[str]) -> dict[str, Any]:
    """Return the labels of each change, and the hints by label, plugin and pod, without those that skip a pod.

    DynamicResources of kube-scheduler skips a pod without its claims. Here PreEnqueue holds it again, as it does with
    the *held* pods.
    """
    normalized: dict[str, Any] = {}
    for number, event in enumerate(events):
        hints = {
            f"{label} {plugin} {pod}": hint.replace("Error", "Queue")  # a failed hint queues the pod
            for label, plugins in event["hints"].items()
            for plugin, pods in plugins.items()
            for pod, hint in pods.items()
            if hint != _SKIP and pod not in held
        }
        normalized[f"event {number}"] = {"labels": event["labels"], **hints}
    return normalized


def _normalize_groups(groups: dict[str, Any]) -> dict[str, Any]:
    normalized = {f"podGroup {key}": golden.normalize(group) for key, group in groups.items()}
    for group in normalized.values():
        # kube-scheduler looks at the scheduled members in any order.
        conditions = group.get("conditions", {})
        group["conditions"] = {key: _DOMAIN_ERROR.sub(r"\1", message) for key, message in conditions.items()}
        for result in (group, *group["members"].values()):
            if result.get("message"):
                result["message"] = _DOMAIN_ERROR.sub(r"\1", result["message"])
    return normalized


def _normalize(pods: dict[str, Any]) -> dict[str, Any]:
    normalized = {key: golden.normalize(result) for key, result in pods.items()}
    for result in normalized.values():
        if result.get("message"):
            # Errors of several nodes are joined in any order.
            result["message"] = _ERROR_IN_PREEMPTION.sub("preemption: running", result["message"])
    return normalized
