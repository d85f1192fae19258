"""The page `/explain` of `extender serve`."""

import json

import yaml

from extender.app.explain_page import render_explain_page
from extender.app.serve_backend import make_recorded_backend
from extender.app.wiring import build_scheduling
from extender.cache.cache import Cache
from extender.extender_api.routes import ExtenderService
from tests.build import make_node, make_pod


def make_service() -> ExtenderService:
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    cache.add_or_update_pod(make_pod("placed", node="n1"))
    cache.add_or_update_pod(make_pod("big", requests={"cpu": "40"}))
    return make_recorded_backend(build_scheduling(), cache).extender_service


def test_a_pending_pod_has_its_current_explanation() -> None:
    page = render_explain_page(make_service(), "default", "big", as_json=True)
    assert page is not None
    values = json.loads(page)
    assert (values["pod"], values["decisions"]) == ("default/big", [])
    assert values["now"]["filterMessage"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_an_assigned_pod_has_its_node_and_the_text_is_yaml() -> None:
    page = render_explain_page(make_service(), "default", "placed", as_json=False)
    assert page is not None
    assert yaml.safe_load(page) == {"pod": "default/placed", "decisions": [], "node": "n1"}


def test_an_unknown_pod_has_no_page() -> None:
    assert render_explain_page(make_service(), "default", "nope", as_json=True) is None
