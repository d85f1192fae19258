"""The page `/explain` of `extender schedule` and `extender serve`: the explanation of a pod, and its verb results."""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from extender.analysis.explain import report_assigned_pod, report_pod
from extender.analysis.pod_group_outcome import PodGroupSimulator
from extender.app.wiring import make_runtime
from extender.cache.cache import Cache
from extender.extender_api.decision_log import DecisionLog
from extender.extender_api.routes import ExtenderService
from extender.framework.profiles import Profile


def render_explain_page(
    key: str,
    cache: Cache,
    profiles: Mapping[str, Profile],
    *,
    as_json: bool,
    default_profile: Profile | None = None,
    decision_log: DecisionLog | None = None,
) -> str | None:
    """Return the page of a pod: as `extender explain` prints it, with the pod's node and its logged verb results.

    Plugins run on a separate runtime, so plugin metrics do not count this page.

    Args:
        key: `namespace/name` of the pod.
        cache: the cluster.
        profiles: the profiles by scheduler name.
        as_json: whether the page is JSON instead of text.
        default_profile: the profile for pods of any other scheduler; None: such pods are not explained.
        decision_log: the verb results; None: no verbs are served.

    Returns:
        None for a pod that is unknown, or that no profile schedules and no verb result names.
    """
    decisions = [] if decision_log is None else decision_log.get_decisions(key)
    values: dict[str, Any] = {"pod": key, "node": None, "assumed": False}
    text = f"Pod {key}\n"
    pending_pod = next((pod for pod in cache.pending_pods.values() if pod.key == key), None)
    assigned_pod = next((pod_info for pod_info in cache.assigned_pods.values() if pod_info.key == key), None)
    profile = None if pending_pod is None else profiles.get(pending_pod.spec.scheduler_name, default_profile)
    if pending_pod is not None and profile is not None:
        runtime = make_runtime()
        report = report_pod(pending_pod, cache, profile, runtime, PodGroupSimulator(cache, profiles, runtime))
        values |= report.to_values()
        text = report.to_text()
    elif assigned_pod is not None:
        values |= {"node": assigned_pod.node_name, "assumed": assigned_pod.assumed}
        profile = profiles.get(assigned_pod.pod.spec.scheduler_name, default_profile)
        if profile is None:
            text += f"  is on node {assigned_pod.node_name}\n"
        else:
            report = report_assigned_pod(assigned_pod, cache.snapshot(), profile, make_runtime())
            values |= report.to_values()
            text = report.to_text()
    elif not decisions:
        return None
    if as_json:
        return msgspec.json.encode({**values, "decisions": decisions}).decode() + "\n"
    plain_decisions = msgspec.json.decode(msgspec.json.encode(decisions))
    return text + (yaml.safe_dump({"decisions": plain_decisions}, sort_keys=False) if decisions else "")


def explain_pod_of_service(extender_service: ExtenderService, namespace: str, name: str, as_json: bool) -> str | None:
    """Return the page of a pod with the current configuration of the verbs."""
    verbs = extender_service.verbs
    return render_explain_page(
        f"{namespace}/{name}",
        verbs.cache,
        verbs.profiles,
        as_json=as_json,
        default_profile=verbs.default_profile,
        decision_log=verbs.decision_log,
    )
