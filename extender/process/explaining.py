"""What the verbs decided about a pod, and what every plugin says of it now, for the page `/explain`."""

from typing import Any

import msgspec
import yaml

from extender.offline.explain import explained as explain
from extender.offline.memberships import Memberships
from extender.web.app import Site
from extender.wiring import engine


def explained(site: Site, namespace: str, name: str, as_json: bool) -> str | None:
    """The last decisions about a pod and, if it waits, a long answer; None if nothing is known of it.

    The text is YAML. Every plugin is asked with an engine of its own, so that metrics tell of requests only.
    """
    verbs = site.verbs
    key, state = f"{namespace}/{name}", verbs.state
    values: dict[str, Any] = {"pod": key, "decisions": verbs.record.about(key)}
    pod = next((each for each in state.waiting.values() if each.key == key), None)
    if pod is not None:
        profile, asking = verbs.profiles.get(pod.spec.scheduler_name, verbs.default), engine()
        groups = Memberships(state, verbs.profiles, asking)
        values["now"] = explain(pod, state, profile, asking, groups).values()
    else:
        values["node"] = next((each.node_name for each in state.placed.values() if each.key == key), None)
        if not values["decisions"] and values["node"] is None:
            return None
    text = msgspec.json.encode(values).decode()
    return f"{text}\n" if as_json else str(yaml.safe_dump(msgspec.json.decode(text), sort_keys=False))
