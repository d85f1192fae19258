"""The pages as HTML, without a browser: status codes, escapes, and the JSON documents."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.ui.page_source import RecordedSource
from extender.ui.pages import make_app

STATIC = Path(__file__).parents[3] / "extender" / "ui" / "static"
HOSTILE_TEXTS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "javascript:alert(1)",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "<svg/onload=alert(1)>",
    "a\u202egpj.exe",
    "a\u200fb",
    "a\u2067b\u2069",
    "\u061cx",
    "\ufeffx",
    "x\u0085y",
    "</td></table><iframe src=//x>",
    "<base href=//x>",
]
PLACES: dict[str, Callable[[str], str]] = {
    "a reason of a gate": lambda text: f"spec: {{schedulingGates: [{{name: {text}}}]}}",
    "a node selector": lambda text: f"spec: {{nodeSelector: {{pool: {text}}}}}",
    "an owner": lambda text: (
        f"metadata: {{name: p, namespace: d, ownerReferences: [{{apiVersion: v1, kind: {text}, name: {text}, uid: u,"
        " controller: true}]}"
    ),
    "the reason of a condition": lambda text: (
        f"status: {{conditions: [{{type: PodScheduled, status: 'False', reason: {text},"
        " lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
    ),
    "a request": lambda text: f"spec: {{containers: [{{name: a, resources: {{requests: {{{text}: 1}}}}}}]}}",
}


@pytest.fixture(scope="module")
def client(demo_source: RecordedSource) -> TestClient:
    """A client of the pages of the demo's recorded cluster."""
    return TestClient(make_app(demo_source))


def make_client(text: str) -> TestClient:
    setup = wiring.build_setup()
    recording = parse_recording(text.encode(), "cluster.yaml")
    return TestClient(make_app(RecordedSource(recording, setup.profiles, wiring.make_runtime())))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/ui/", "12 nodes"),
        ("/ui/waiting", "8 waiting pods"),
        ("/ui/nodes/gpu-a1", "nvidia.com/gpu=present:NoSchedule"),
        ("/ui/pods/batch/month-end", "fits on none of 12 nodes"),
        ("/ui/pods/shop/api-7f4b-g3ypl", "NodeResourcesBalancedAllocation +1"),
        ("/ui/pods/shop/api-7f4b-c6jd2", "is on node general-a1"),
        ("/ui/pods/batch/import", "waiting for scheduling gates: [example.com/quota]"),
        (
            "/ui/pods/shop/api-7f4b-g3ypl",
            '<a href="/ui/nodes/general-a3"><bdi>general-a3</bdi></a> is the best of 6 feasible nodes (total 839), 11 '
            "ahead of",
        ),
        (
            "/ui/pods/shop/frontend-5d8c-k7wzd?node=+general-c1",
            "Node general-c1 is rejected by NodeResourcesFit\n"
            "  NodeResourcesFit: Insufficient cpu: wants 500m, but only 400m are free (100m short)",
        ),
        ("/ui/pods/shop/frontend-5d8c-k7wzd?node=general-c9", "There is no node general-c9; did you mean "),
        ("/ui/search?q=api", "5 pods and 0 nodes"),
        ("/ui/search?q=k7wz", "1 pod and 0 nodes with"),
        ("/ui/search", "Enter a part"),
        ("/ui/waiting?find=Shop%2F", "3 of 8 waiting pods"),
        ("/ui/waiting?find=none", "0 of 8 waiting pods"),
        ("/ui/waiting?page=nonsense", "8 waiting pods"),
        ("/ui/waiting?page=99999999999999", "8 waiting pods"),
        ("/ui/pods/batch/month-end?unfold=nonsense", "fits on none of 12 nodes"),
    ],
)
def test_a_page_has_its_text(client: TestClient, path: str, text: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert text in response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/ui/nodes/none", "There is no node none."),
        ("/ui/nodes/general-a", "There is no node general-a; did you mean &#34;general-a"),
        ("/ui/pods/shop/none", "there is no such pod"),
        ("/ui/pods/shop/apj-7f4b-g3ypl", "did you mean shop/api-7f4b-g3ypl"),
        ("/ui/none", "There is no such page."),
        ("/ui/static/none.js", "There is no such page."),
        ("/ui/static/../pages.py", "There is no such page."),
        ("/ui/static/%2e%2e/pages.py", "There is no such page."),
    ],
)
def test_an_unknown_page_says_so(client: TestClient, path: str, text: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert text in response.text


def test_a_search_names_the_pods_that_wait_first(client: TestClient) -> None:
    text = client.get("/ui/search?q=frontend").text
    assert "<title>Search: frontend · extender</title>" in text
    assert text.index("frontend-5d8c-k7wzd") < text.index("frontend-5d8c-4hx9k")


def test_a_search_names_the_pods_and_the_nodes_in_the_order_of_their_names() -> None:
    """The cluster has them in another order: the nodes by turns from each zone."""
    items = []
    for name in ("b", "a2", "a1", "a3"):
        pod = {"metadata": {"name": f"node-{name}", "namespace": "d"}, "spec": {"nodeName": "node-b"}}
        items.append({"apiVersion": "v1", "kind": "Pod", **pod})
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{name}"}})
    text = make_client(json.dumps({"kind": "List", "apiVersion": "v1", "items": items})).get("/ui/search?q=node-a").text
    assert re.findall(r'href="/ui/(?:pods/d|nodes)/node-(a\d)"', text) == ["a1", "a2", "a3", "a1", "a2", "a3"]


def test_a_page_that_cannot_be_made_is_an_error_with_a_page(
    demo_source: RecordedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of plugins may raise anything. Its text may be secret, and is only logged, by the server."""

    def fail(_: str) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(demo_source, "explain", fail)
    client = TestClient(make_app(demo_source), raise_server_exceptions=False)
    response = client.get("/ui/pods/shop/api-7f4b-g3ypl")
    assert (response.status_code, response.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert "<p>Internal error: KeyError. The log of this process has the details.</p>" in response.text
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("frontend-5d8c-k7wzd", "/ui/pods/shop/frontend-5d8c-k7wzd"),
        ("+Shop/frontend-5d8c-k7wzd+", "/ui/pods/shop/frontend-5d8c-k7wzd"),
        ("gpu-a1", "/ui/nodes/gpu-a1"),
    ],
)
def test_a_search_for_a_complete_name_leads_to_its_page(client: TestClient, text: str, address: str) -> None:
    response = client.get(f"/ui/search?q={text}", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, address)


def test_a_name_that_several_objects_have_leads_to_the_list() -> None:
    pods = "\n---\n".join(f"{{kind: Pod, apiVersion: v1, metadata: {{name: a, namespace: {name}}}}}" for name in "bc")
    response = make_client(pods).get("/ui/search?q=a", follow_redirects=False)
    assert (response.status_code, "2 pods and 0 nodes" in response.text) == (200, True)


def make_pods_of_many_kinds() -> str:
    """No node and eleven pods that all differ, on two pages; one is for another scheduler."""
    pods = [
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": f"p{number:02}", "namespace": "shop", "labels": {"n": f"{number}"}},
        }
        for number in range(12)
    ]
    pods[-1]["spec"] = {"schedulerName": "nobody"}
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": pods})


def test_the_search_of_waiting_pods_stays_on_the_next_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.ui.waiting_page.get_entries_per_page", lambda _: 10)
    client = make_client(make_pods_of_many_kinds())
    text = client.get("/ui/waiting?find=shop/p").text
    assert "11 of 11 waiting pods" in text
    assert "<title>Waiting pods: shop/p, page 1 of 2 · extender</title>" in text
    assert "one of 11 entries. The numbers below are those of this page." in text
    assert 'href="/ui/waiting?page=2&amp;find=shop/p"' in text
    assert "shop/p10" not in text
    second = client.get("/ui/waiting?find=shop/p&page=2").text
    assert "shop/p10" in second
    assert 'href="/ui/waiting?page=1&amp;find=shop/p"' in second
    assert "shop/p03" in client.get("/ui/waiting?find=p03").text
    assert "shop/p04" not in client.get("/ui/waiting?find=p03").text


@pytest.mark.parametrize("path", ["/ui/waiting", "/ui/pods/d/a"])
def test_a_year_is_shown_with_four_digits(path: str) -> None:
    metadata = "{name: a, namespace: d, creationTimestamp: '0001-02-03T04:05:06Z'}"
    page = make_client(f"{{apiVersion: v1, kind: Pod, metadata: {metadata}, spec: {{}}}}").get(path).text
    assert '<time datetime="0001-02-03T04:05:06+00:00">0001-02-03 04:05:06 UTC</time> (created)' in page


def test_an_equally_good_candidate_of_preemption_is_one_other() -> None:
    node = "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: 1, pods: 9}}}\n---\n"
    spec = "priority: %s, containers: [{name: a, resources: {requests: {cpu: 1}}}]"
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%s}}\n---\n"
    text = "".join(node % name + pod % (f"on-{name}", f"nodeName: {name}, {spec % 0}") for name in ("n1", "n2"))
    page = make_client(text + pod % ("urgent", spec % 10)).get("/ui/pods/default/urgent").text
    assert "as good as 1 other." in page


def test_waiting_pods_and_groups_name_the_kinds_that_were_not_read() -> None:
    """Otherwise the claim would seem not to exist."""
    page = make_client(
        "apiVersion: v1\nkind: List\nrecordedKinds: [Node, Pod]\nunreadableKinds: {PersistentVolumeClaim: grant it}\n"
        "items:\n"
        "- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, pods: 9}}}\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: d}, spec: {volumes: [{name: v, "
        "persistentVolumeClaim: {claimName: c}}], schedulingGroup: {podGroupName: ring}}}\n"
    )
    for path in ("/ui/waiting", "/ui/groups/d/ring", "/ui/pods/d/a"):
        text = page.get(path).text
        assert (path, "not readable: persistentvolumeclaims; grant it" in text) == (path, True)


def test_waiting_pods_of_a_scheduler_without_a_profile_are_named() -> None:
    text = make_client(make_pods_of_many_kinds()).get("/ui/waiting").text
    assert "11 waiting pods" in text
    assert "1 pod waits for scheduler “<bdi>nobody</bdi>”, which has no profile here" in text
    assert "<bdi>shop/p11</bdi>" in text


@pytest.mark.parametrize("path", ["/", "/ui"])
def test_the_address_without_a_page_leads_to_the_first_page(client: TestClient, path: str) -> None:
    response = client.get(path, follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_request_that_could_change_something_is_served(client: TestClient, method: str) -> None:
    assert client.request(method, "/ui/pods/batch/month-end").status_code == 405


def test_every_link_of_the_first_pages_leads_to_a_page(client: TestClient) -> None:
    seen: set[str] = set()
    for page in ("/ui/", "/ui/waiting", "/ui/pods/shop/frontend-5d8c-k7wzd", "/ui/nodes/general-a1"):
        seen |= set(find_links(client.get(page).text))
    assert "/ui/nodes/general-c1" in seen
    assert {link: client.get(link).status_code for link in seen if client.get(link).status_code != 200} == {}


def find_links(html: str) -> list[str]:
    return [part.partition('"')[0].partition("#")[0] for part in html.split('href="')[1:] if part.startswith("/")]


def list_imports(script: str) -> set[str]:
    """The names of the scripts that a script imports, and of those that these import."""
    names = set(re.findall(r'(?:from|import) "\./(\w+)\.js"', (STATIC / f"{script}.js").read_text()))
    return names.union(*map(list_imports, names))


@pytest.mark.parametrize("template", ["cluster", "waiting", "pod", "what_if", "queue", "decisions"])
def test_a_browser_learns_at_once_of_all_scripts_of_a_page(template: str) -> None:
    """Otherwise it finds an import only when it has the script that imports it, one round trip after another."""
    text = (STATIC.parent / "templates" / f"{template}.html").read_text()
    (script,) = re.findall(r'<script type="module" src="{{ prefix }}/static/(\w+)\.js"', text)
    preloaded = re.findall(r'<link rel="modulepreload" href="{{ prefix }}/static/(\w+)\.js">', text)
    assert set(preloaded) == list_imports(script)


def test_the_pages_load_nothing_from_other_hosts_and_have_nothing_inline(client: TestClient) -> None:
    for path in ("/ui/", "/ui/waiting", "/ui/pods/shop/api-7f4b-g3ypl", "/ui/nodes/gpu-a1", "/ui/search?q=a"):
        html = client.get(path).text
        assert "://" not in html.replace("http://testserver", "")
        assert " style=" not in html
        assert " onclick" not in html
        assert "<script>" not in html
    for file in STATIC.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, file.name
        assert "innerHTML" not in text, file.name


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_text_with_markup_or_invisible_characters_is_shown_as_text(place: str, text: str) -> None:
    """A hundred cases: twenty texts in five fields of a pod."""
    quoted = '"' + text.encode("unicode_escape").decode().replace('"', '\\"').replace("\\x85", "\\N") + '"'
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 1, pods: 5}}\n"
    fields = PLACES[place](quoted)
    meta = "" if fields.startswith("metadata") else "metadata: {name: p, namespace: d, uid: u}\n"
    client = make_client(f"{node}---\napiVersion: v1\nkind: Pod\n{meta}{fields}\n")
    for path in ("/ui/waiting", "/ui/pods/d/p"):
        response = client.get(path)
        assert response.status_code == 200
        assert is_harmless(response.text, text)


def is_harmless(html: str, text: str) -> bool:
    """Whether a page contains neither the markup nor the invisible characters of *text*."""
    has_markup = any(character in text for character in "<>\"'") and text in html
    return not has_markup and all(character.isprintable() or character in "\n\t" for character in html)


def test_a_hostile_text_is_seen_if_it_is_not_escaped() -> None:
    assert not is_harmless("<p><script>alert(1)</script></p>", "<script>alert(1)</script>")
    assert not is_harmless("<p>a\u202eb</p>", "a\u202eb")
    assert is_harmless("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>", "<script>alert(1)</script>")


def test_a_copied_command_line_names_a_pod_in_quotes() -> None:
    """A recording may have any name. A shell would run the part after the semicolon."""
    client = make_client('apiVersion: v1\nkind: Pod\nmetadata: {name: "p; rm -r x", namespace: d}\n')
    page = client.get("/ui/pods/d/p; rm -r x").text
    assert '<code id="command">extender explain &#39;d/p; rm -r x&#39;</code>' in page


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_hostile_search_is_shown_as_text(client: TestClient, text: str) -> None:
    response = client.get("/ui/search", params={"q": text})
    assert response.status_code == 200
    assert is_harmless(response.text, text)


def test_the_page_of_a_group_is_linked_from_its_members() -> None:
    client = make_client(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: d}\n"
        'spec: {schedulingGroup: {podGroupName: "<b>ring<b>"}}\n'
    )
    assert 'href="/ui/groups/d/%3Cb%3Ering%3Cb%3E"' in client.get("/ui/pods/d/a").text
    page = client.get("/ui/groups/d/<b>ring<b>")
    assert "&lt;b&gt;ring&lt;b&gt;" in page.text
    assert client.get("/ui/groups/d/none").status_code == 404
    assert "There is no pod group d/none." in client.get("/ui/groups/d/none").text


def test_the_page_of_a_node_has_the_messages_of_its_conditions() -> None:
    condition = "{type: Ready, status: 'False', reason: KubeletNotReady, message: no <b>network</b>}"
    client = make_client(f"apiVersion: v1\nkind: Node\nmetadata: {{name: n1}}\nstatus: {{conditions: [{condition}]}}\n")
    page = client.get("/ui/nodes/n1").text
    assert "<li>Ready: False (KubeletNotReady): no &lt;b&gt;network&lt;/b&gt;</li>" in page
