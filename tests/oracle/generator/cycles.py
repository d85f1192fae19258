"""Makes scenarios of whole scheduling cycles: several profiles, nominated pods, and HTTP extenders with scripts."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.configuration import make_configuration, make_plugin_config

_KIND: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_SCHEDULERS: Final = ("second-scheduler", "third-scheduler")
_MAX_WEIGHT: Final = 100
_RESOURCES: Final = ("example.com/gpu", "example.com/fpga")


def add_cycles(builder: ClusterBuilder, scenario: Raw, scheduler: str) -> None:
    """Add profiles, extenders and their scripts to a *scenario*, and change the schedulers and nodes of its pods."""
    items = scenario["items"]
    pending = [item for item in items if item["kind"] == "Pod" and not item["spec"].get("nodeName")]
    nodes = [item["metadata"]["name"] for item in items if item["kind"] == "Node"]
    config = scenario.setdefault("config", {**_KIND, "profiles": [{"schedulerName": scheduler}]})
    names = [scheduler, *builder.sample(_SCHEDULERS, 0, 2)]
    config["profiles"] += [make_configuration(builder, name)["profiles"][0] for name in names[1:]]
    for profile in config["profiles"]:
        _keep_scores(profile)
    for pod in pending:
        pod["spec"]["schedulerName"] = builder.pick((*names, *names, *names, "unknown-scheduler"))
        if nodes and builder.chance(0.3):
            pod["status"]["nominatedNodeName"] = builder.pick((*nodes, *nodes, "deleted-node"))
    if builder.chance(0.5):
        _fill_nodes(builder, items, pending)
    extenders: list[Raw] = []
    resources = builder.sample(_RESOURCES, 0, 2)
    scripts: list[Raw] = []
    for number in range(builder.pick((0, 1, 1, 2, 3))):
        extenders.append(_make_extender(builder, number, resources))
        scripts.append(_make_script(builder, items, nodes))
    if extenders:
        config["extenders"] = extenders
        for profile in config["profiles"]:
            _add_fit_arguments(profile)
    if sum("preemptVerb" in extender for extender in extenders) > 1:
        for script in scripts:  # which could repeat a victim: the next extender gets it once here
            script["preempt"].pop("more", None)
    scenario["cycles"] = {"extenders": scripts}
    if len(pending) > 1 and builder.chance(0.4):
        scenario["cycles"]["sequence"] = _make_sequence(builder, pending)
    scenario.pop("events", None)


def _make_sequence(builder: ClusterBuilder, pending: list[Raw]) -> list[str]:
    """Return the keys of 2 to 6 pods in the order of their priorities, so that none of them preempts another."""
    pods = builder.sample(pending, 2, 6)
    pods.sort(key=lambda pod: -pod["spec"].get("priority", 0))
    return [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods]


def _fill_nodes(builder: ClusterBuilder, items: list[Raw], pending: list[Raw]) -> None:
    """Let pods preempt: most nodes have no room for another pod, and some of the pending pods are important."""
    on_nodes = [item["spec"].get("nodeName") for item in items if item["kind"] == "Pod"]
    for node in [item for item in items if item["kind"] == "Node"]:
        count = on_nodes.count(node["metadata"]["name"])
        if count and builder.chance(0.8):
            node["status"].setdefault("allocatable", {})["pods"] = str(count)
    for pod in pending:
        if builder.chance(0.7):
            pod["spec"]["priority"] = builder.pick((2000, 2000, 1000))
            pod["spec"].pop("preemptionPolicy", None)


def _keep_scores(profile: Raw) -> None:
    """Enable Score plugins again, with small weights: the oracle has one that selects the first of equal nodes."""
    plugins: dict[str, Raw] = profile.get("plugins", {})
    if {"name": "*"} in plugins.get("score", {}).get("disabled", ()):
        del plugins["score"]
    for plugin in plugins.get("score", {}).get("enabled", ()):
        plugin["weight"] = min(plugin.get("weight", 0), _MAX_WEIGHT)


def _add_fit_arguments(profile: Raw) -> None:
    """Add the arguments of NodeResourcesFit, which kube-scheduler requires for resources that it ignores."""
    plugin_config: list[Raw] = profile.setdefault("pluginConfig", [])
    if all(entry["name"] != "NodeResourcesFit" for entry in plugin_config):
        plugin_config += make_plugin_config({"NodeResourcesFit": {}})


def _make_extender(builder: ClusterBuilder, number: int, resources: list[str]) -> Raw:
    extender: Raw = {"urlPrefix": f"http://extender-{number}.example/verbs"}
    for verb, probability in (("filter", 0.7), ("prioritize", 0.6), ("preempt", 0.6)):
        if builder.chance(probability):
            extender[f"{verb}Verb"] = verb
    extender["weight"] = builder.pick((1, 1, 5, 100))
    for field in ("nodeCacheCapable", "ignorable"):
        if builder.chance(0.5):
            extender[field] = True
    if resources and builder.chance(0.5):  # each resource has one extender at most
        resource: Raw = {"name": resources.pop()}
        if builder.chance(0.5):
            resource["ignoredByScheduler"] = True
        extender["managedResources"] = [resource]
    return extender


def _make_script(builder: ClusterBuilder, items: list[Raw], nodes: list[str]) -> Raw:
    return {
        "filter": _make_filter(builder, nodes),
        "prioritize": _make_prioritize(builder, nodes),
        "preempt": _make_preempt(builder, items, nodes),
    }


def _make_filter(builder: ClusterBuilder, nodes: list[str]) -> Raw:
    if builder.chance(0.08):
        return {"code": builder.pick((400, 500, 503))}
    answer: Raw = {}
    if builder.chance(0.06):
        answer["Error"] = "the extender is not ready"
    dropped = builder.sample(nodes, 0, len(nodes))
    for field in ("FailedNodes", "FailedAndUnresolvableNodes"):
        failed = builder.sample([*dropped, *nodes[:1], "elsewhere"], 0, len(dropped))
        if failed and builder.chance(0.7):
            reasons = ("no room for the device", "too hot", "")
            answer[field] = {name: builder.pick(reasons) for name in failed}
    script: Raw = {"drop": dropped, "answer": answer}
    if builder.chance(0.04):
        script["more"] = ["elsewhere"]
    return script


def _make_prioritize(builder: ClusterBuilder, nodes: list[str]) -> Raw:
    if builder.chance(0.1):
        return {"code": 500}
    scores = [
        {"Host": name, "Score": builder.pick((0, 1, 3, 10, 10, 25, -4))}
        for name in builder.sample((*nodes, "elsewhere"), 0, len(nodes) + 1)
    ]
    return {"scores": scores}


def _make_preempt(builder: ClusterBuilder, items: list[Raw], nodes: list[str]) -> Raw:
    """Return a script with at most one node that has an error: kube-scheduler looks at the nodes in any order."""
    if builder.chance(0.06):
        return {"code": 500}
    script: dict[str, Any] = {"drop": builder.sample(nodes, 0, len(nodes) // 2), "reverse": builder.chance(0.3)}
    left = [name for name in nodes if name not in script["drop"]]
    script["keep"] = {name: builder.pick((1, 1, 2)) for name in builder.sample(left, 0, len(left))}
    script["violations"] = {name: builder.pick((0, 1, 2)) for name in builder.sample(left, 0, 2)}
    script["more"] = {name: _pick_uids(builder, items, name) for name in builder.sample(left, 0, 2)}
    if left and builder.chance(0.1):
        name = builder.pick(left)
        script["more"].pop(name, None)
        if builder.chance(0.5):
            script["keep"][name] = 0
        else:
            script["more"][name] = ["unknown"]
    return script


def _pick_uids(builder: ClusterBuilder, items: list[Raw], node: str) -> list[str]:
    """Return the uids of pods on a node, which may be victims already."""
    pods = [item for item in items if item["kind"] == "Pod" and item["spec"].get("nodeName") == node]
    started = [pod for pod in pods if pod["status"].get("startTime") and pod["status"]["phase"] == "Running"]
    return [pod["metadata"]["uid"] for pod in builder.sample(started, 0, 2)]
