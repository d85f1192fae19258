"""Describe problems with the watches of a live cluster, in lines of text: missing rights and lost connections."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from extender.api.kinds.meta import KubernetesObject
from extender.app.informers import Informers
from extender.basics.clock import Clock
from extender.client.reflector import Reflector

_MAX_NAMED_KINDS: Final = 4


def list_watch_problems(informers: Informers, clock: Clock) -> list[str]:
    """Return one line for each kind that may not be read or watched, and one for each reason of lost watches.

    The first line names the kinds that are being read for the first time, so that the pages are incomplete.

    A kind that the API server does not serve is no problem.
    """
    lost = dict[str, list[Reflector[Any]]]()
    unread = [each for each in informers.reflectors.values() if not each.synced.is_set() and not each.last_error]
    lines = [f"not complete yet: {_name_kinds(unread)} are being read"] if unread else []
    for reflector in informers.reflectors.values():
        plural, error = _get_plural(reflector), reflector.last_error
        is_not_served = reflector.is_optional and reflector.synced.is_set() and not reflector.counts.lists
        if not error or is_not_served:
            continue
        failure = error.removeprefix(f"{plural}: ")
        if not reflector.synced.is_set():
            lines.append(f"not readable: {plural}; {_describe_failure(reflector, failure)}")
        elif reflector.forbidden:
            time = _format_last_contact(reflector, clock)
            lines.append(f"{plural} are shown as of {time}; {_describe_failure(reflector, failure)}")
        else:
            lost.setdefault(failure, []).append(reflector)
    for failure, reflectors in lost.items():
        newest = max(reflectors, key=lambda reflector: reflector.last_contact or 0.0)
        time, kinds = _format_last_contact(newest, clock), _name_kinds(reflectors)
        lines.append(f"the watch of {kinds} is lost, shown as of {time}: {failure}")
    return lines


def list_unreadable_kinds(reflectors: Mapping[type[KubernetesObject], Reflector[Any]]) -> dict[str, str]:
    """Return the kinds that have not been read, with the reason: the missing right, or the last error."""
    return {
        kind.__name__: _describe_failure(reflector, reflector.last_error.removeprefix(f"{_get_plural(reflector)}: "))
        for kind, reflector in reflectors.items()
        if not reflector.synced.is_set()
    }


def _describe_failure(reflector: Reflector[Any], failure: str) -> str:
    if reflector.forbidden:
        verbs = 'verb "watch"' if reflector.synced.is_set() else 'verbs "list" and "watch"'
        return f"grant the {verbs} on {_get_plural(reflector)} ({failure})"
    return failure or "not read yet"


def _get_plural(reflector: Reflector[Any]) -> str:
    return reflector.list_watch.endpoint.plural


def _name_kinds(reflectors: list[Reflector[Any]]) -> str:
    plurals = sorted(map(_get_plural, reflectors))
    if len(plurals) <= _MAX_NAMED_KINDS:
        return ", ".join(plurals)
    return f"{', '.join(plurals[:_MAX_NAMED_KINDS])} and {len(plurals) - _MAX_NAMED_KINDS} other kinds"


def _format_last_contact(reflector: Reflector[Any], clock: Clock) -> str:
    age = timedelta(seconds=reflector.compute_staleness(clock.monotonic()))
    return f"{datetime.fromtimestamp(clock.now(), UTC) - age:%H:%M:%S} UTC"
