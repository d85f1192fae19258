"""Execute a request with any verb except list and watch."""

from typing import Any, Final, NamedTuple

from extender.fake_apiserver.endpoints.listing import parse_list_selector
from extender.fake_apiserver.endpoints.request_info import RequestInfo
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import make_success_status, new_unsupported_media
from extender.fake_apiserver.registry.event_conversion import to_core_event
from extender.fake_apiserver.registry.pod_subresources import bind, evict
from extender.fake_apiserver.registry.resources import Object, get_storage_resource

MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


class VerbResult(NamedTuple):
    """The result of a request.

    Attributes:
        content: the object, list or Status.
        code: the HTTP status.
        is_requested_resource: whether the content is an object of the requested resource, not a list or a Status.
    """

    content: Object
    code: int = 200
    is_requested_resource: bool = True


def execute(api: Api, request: RequestInfo, body: Any, media_type: str) -> VerbResult:
    """Execute a request with any verb except list and watch. *body* is the object, the DeleteOptions or the patch.

    Raises:
        StatusError: the request fails.
    """
    resource, namespace, name = get_storage_resource(request.resource), request.namespace, request.name
    if isinstance(body, list) and resource is not request.resource:
        raise new_unsupported_media()  # the paths in the patch are not converted to core/v1
    if resource is not request.resource and "delete" not in request.verb:
        body = to_core_event(body)
    match request.verb, request.subresource:
        case "get", _:
            return VerbResult(api.get(resource, namespace, name))
        case "create", "binding":
            return VerbResult(bind(api, namespace, name, body, dry_run=request.dry_run), 201, False)
        case "create", "eviction":
            return VerbResult(evict(api, namespace, name, body, dry_run=request.dry_run), 201, False)
        case "create", _:
            return VerbResult(api.create(resource, namespace, body, dry_run=request.dry_run), 201)
        case "update", subresource:
            content, is_new = api.update(
                resource, namespace, name, body, subresource=subresource, dry_run=request.dry_run
            )
            return VerbResult(content, 201 if is_new else 200)
        case "patch", subresource:
            if media_type not in {MERGE_PATCH, STRATEGIC_MERGE_PATCH, JSON_PATCH}:
                raise new_unsupported_media()
            patch = api.patch_strategically if media_type == STRATEGIC_MERGE_PATCH else api.patch
            return VerbResult(patch(resource, namespace, name, body, subresource=subresource, dry_run=request.dry_run))
        case "delete", _:
            return _delete(api, request, _parse_delete_options(request, body))
        case _:
            return _delete_collection(api, request, _parse_delete_options(request, body))


def _parse_delete_options(request: RequestInfo, body: Object) -> Object:
    """Return the DeleteOptions in the body, or else the options in the query."""
    seconds = request.parse_int_param("gracePeriodSeconds")
    return body if body or seconds is None else {"gracePeriodSeconds": seconds}


def _delete(api: Api, request: RequestInfo, options: Object) -> VerbResult:
    resource = get_storage_resource(request.resource)
    dry_run = request.dry_run or options.get("dryRun") == ["All"]
    last_state, is_removed = api.delete(resource, request.namespace, request.name, options, dry_run=dry_run)
    if not is_removed or resource.return_deleted_object:
        return VerbResult(last_state)
    details = {"name": request.name, "kind": resource.plural, "uid": last_state["metadata"]["uid"]}
    return VerbResult(
        make_success_status({**details, "group": resource.group} if resource.group else details),
        is_requested_resource=False,
    )


def _delete_collection(api: Api, request: RequestInfo, options: Object) -> VerbResult:
    resource = get_storage_resource(request.resource)
    selector = parse_list_selector(request)
    items = [content for content in api.list_objects(resource, request.namespace) if selector.matches(content)]
    for content in items:
        meta = content["metadata"]
        api.delete(resource, meta.get("namespace", ""), meta["name"], options, dry_run=request.dry_run)
    meta = {"resourceVersion": str(api.store.resource_version)}
    content_list = {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.group_version,
        "metadata": meta,
        "items": items,
    }
    return VerbResult(content_list, is_requested_resource=False)
