"""What each verb does: from a request that was read to an object and a status of HTTP."""

from typing import Any, Final, NamedTuple

from extender.sandbox.api import Api
from extender.sandbox.asked import Asked
from extender.sandbox.event_forms import to_core
from extender.sandbox.listing import chosen
from extender.sandbox.placing import bind, evict
from extender.sandbox.refusals import success, unsupported_media
from extender.sandbox.served import Object, kept_as

MERGE: Final = "application/merge-patch+json"
OPERATIONS: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"


class Done(NamedTuple):
    """What came of a request.

    Attributes:
        made: an object, or a Status.
        code: the status of HTTP.
        is_object: whether it is an object of the kind asked for.
    """

    made: Object
    code: int = 200
    is_object: bool = True


def done(api: Api, asked: Asked, body: Any, media: str) -> Done:
    """Does what is asked: any verb but list and watch.

    Args:
        api: the objects.
        asked: the request.
        body: what came with it: an object; the operations of a JSON patch.
        media: what the body is, as its Content-Type says.

    Raises:
        RefusedError: it is not done.
    """
    kind, namespace, name = kept_as(asked.kind), asked.namespace, asked.name
    if isinstance(body, list) and kind is not asked.kind:
        raise unsupported_media()  # its paths would be those of the other form
    if kind is not asked.kind and "delete" not in asked.verb:
        body = to_core(body)
    match asked.verb, asked.part:
        case "get", _:
            return Done(api.get(kind, namespace, name))
        case "create", "binding":
            return Done(bind(api, namespace, name, body, dry_run=asked.dry_run), 201, False)
        case "create", "eviction":
            return Done(evict(api, namespace, name, body, dry_run=asked.dry_run), 201, False)
        case "create", _:
            return Done(api.create(kind, namespace, body, dry_run=asked.dry_run), 201)
        case "update", part:
            made, new = api.update(kind, namespace, name, body, part=part, dry_run=asked.dry_run)
            return Done(made, 201 if new else 200)
        case "patch", part:
            if media not in {MERGE, STRATEGIC, OPERATIONS}:
                raise unsupported_media()
            strategic = media == STRATEGIC
            made = api.patch(kind, namespace, name, body, strategic=strategic, part=part, dry_run=asked.dry_run)
            return Done(made)
        case "delete", _:
            return _deleted(api, asked, _options(asked, body))
        case _:
            return _all_deleted(api, asked, _options(asked, body))


def _options(asked: Asked, body: Object) -> Object:
    """A DeleteOptions from the body, else from the query."""
    seconds = asked.number("gracePeriodSeconds")
    return body if body or seconds is None else {"gracePeriodSeconds": seconds}


def _deleted(api: Api, asked: Asked, options: Object) -> Done:
    kind = kept_as(asked.kind)
    dry_run = asked.dry_run or options.get("dryRun") == ["All"]
    last, gone = api.delete(kind, asked.namespace, asked.name, options, dry_run=dry_run)
    if not gone or kind.shown_deleted:
        return Done(last)
    details = {"name": asked.name, "kind": kind.plural, "uid": last["metadata"]["uid"]}
    return Done(success({**details, "group": kind.group} if kind.group else details), is_object=False)


def _all_deleted(api: Api, asked: Asked, options: Object) -> Done:
    kind = kept_as(asked.kind)
    wanted = chosen(asked)
    items = [thing for thing in api.each(kind, asked.namespace) if wanted.chooses(thing)]
    for thing in items:
        meta = thing["metadata"]
        api.delete(kind, meta.get("namespace", ""), meta["name"], options, dry_run=asked.dry_run)
    meta = {"resourceVersion": str(api.store.version)}
    made = {"kind": f"{kind.kind}List", "apiVersion": kind.version, "metadata": meta, "items": items}
    return Done(made, is_object=False)
