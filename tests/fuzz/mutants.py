"""Valid requests to the verbs, and mutants of them: values of other types, cut bytes, repeated and nested parts."""

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from tests.properties.test_random_requests import BY_NAMES, BY_NODES, NODE, POD, PREEMPT_ARGS, find_paths

VICTIM_POD: Final = {"metadata": {"name": "v", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}
BIND_ARGS: Final = {"PodName": "web", "PodNamespace": "default", "PodUID": "u", "Node": "n1"}
WHOLE_VICTIMS: Final = {
    "Pod": POD,
    "NodeNameToVictims": {"n1": {"Pods": [VICTIM_POD], "NumPDBViolations": 0}},
    "NodeNameToMetaVictims": None,
}
REQUESTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("/filter", BY_NAMES),
    ("/filter", BY_NODES),
    ("/prioritize", BY_NAMES),
    ("/prioritize", BY_NODES),
    ("/preempt", PREEMPT_ARGS),
    ("/preempt", WHOLE_VICTIMS),
    ("/bind", BIND_ARGS),
)

_TEXTS: Final = ("", " ", "0", "-1", "1e400", "1Ei", "9" * 40, "n1", "a/b/c", "../../x", "\x00", "é" * 70, "x" * 5000)
_NUMBERS: Final = (0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e300)
_LISTS: Final[tuple[list[Any], ...]] = ([], [None], [[]], [{}], [0] * 1000, [{}] * 1000, ["x"] * 1000)
_OBJECTS: Final[tuple[dict[str, Any], ...]] = ({}, {"": ""}, {"a": None}, {f"k{n}": str(n) for n in range(300)})
_REPLACEMENTS: Final = (None, True, False, *_TEXTS, *_NUMBERS, *_LISTS, *_OBJECTS, POD, NODE)


def make_mutants(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield *count* pairs of a verb's path and a mutated body. The same seed yields the same mutants."""
    rng = Random(seed)
    for _ in range(count):
        path, request = rng.choice(REQUESTS)
        body = json.dumps(_mutate_values(request, rng), separators=rng.choice([(",", ":"), (", ", ": ")])).encode()
        mutate_bytes = rng.choice(_BYTE_MUTATIONS)
        yield path, mutate_bytes(body, rng)


def _mutate_values(request: dict[str, Any], rng: Random) -> dict[str, Any]:
    """Return *request* with up to four values replaced, removed, repeated or nested."""
    mutant = copy.deepcopy(request)
    for _ in range(rng.randrange(5)):
        paths = find_paths(mutant)
        if not paths:
            break
        *parents, key = rng.choice(paths)
        container: Any = mutant
        for parent in parents:
            container = container[parent]
        match rng.randrange(4):
            case 0:
                container[key] = copy.deepcopy(rng.choice(_REPLACEMENTS))
            case 1:
                del container[key]
            case 2:
                container[key] = [container[key]] * rng.choice([1, 2, 50])
            case _:
                container[key] = {str(key): container[key]}
    return mutant


def _keep(body: bytes, _: Random) -> bytes:
    return body


def _cut(body: bytes, rng: Random) -> bytes:
    start, end = sorted((rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)))
    return body[:start] + body[end:] if rng.random() < 0.5 else body[start:end]


def _flip(body: bytes, rng: Random) -> bytes:
    mutant = bytearray(body)
    for _ in range(rng.randrange(1, 4)):
        if mutant:
            mutant[rng.randrange(len(mutant))] = rng.randrange(256)
    return bytes(mutant)


def _repeat_part(body: bytes, rng: Random) -> bytes:
    start, end = sorted((rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)))
    return body[:end] + body[start:end] * rng.choice([1, 3]) + body[end:]


_BYTE_MUTATIONS: Final[tuple[Callable[[bytes, Random], bytes], ...]] = (_keep, _keep, _keep, _cut, _flip, _repeat_part)
