"""The page `/explain` of `extender serve`: the last verb results for a pod, and its current explanation."""

from typing import Any

import msgspec
import yaml

from extender.analysis.explain import report_pod
from extender.analysis.pod_group_outcome import PodGroupSimulator
from extender.app.wiring import make_runtime
from extender.extender_api.routes import ExtenderService


def render_explain_page(extender_service: ExtenderService, namespace: str, name: str, as_json: bool) -> str | None:
    """Return the logged verb results for a pod, with an explanation for a pending pod; None for an unknown pod.

    The text is YAML, or JSON with *as_json*. Plugins run on a separate runtime, so plugin metrics count requests only.
    """
    verbs = extender_service.verbs
    key, cache = f"{namespace}/{name}", verbs.cache
    values: dict[str, Any] = {"pod": key, "decisions": verbs.decision_log.get_decisions(key)}
    pod = next((pod for pod in cache.pending_pods.values() if pod.key == key), None)
    if pod is not None:
        profile = verbs.profiles.get(pod.spec.scheduler_name, verbs.default_profile)
        runtime = make_runtime()
        pod_groups = PodGroupSimulator(cache, verbs.profiles, runtime)
        values["now"] = report_pod(pod, cache, profile, runtime, pod_groups).to_values()
    else:
        assigned_pods = cache.assigned_pods.values()
        values["node"] = next((pod_info.node_name for pod_info in assigned_pods if pod_info.key == key), None)
        if not values["decisions"] and values["node"] is None:
            return None
    text = msgspec.json.encode(values).decode()
    return f"{text}\n" if as_json else str(yaml.safe_dump(msgspec.json.decode(text), sort_keys=False))
