"""The page What if as HTML and its document, without a browser."""

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from extender.app.pages.ui_pages import make_answers
from extender.app.wiring import build_setup
from extender.cli.planning.what_if import app as what_if_command
from extender.ui.page_source import RecordedSource
from extender.ui.pages import make_app
from extender.ui.what_if import answers as answers_module
from extender.ui.what_if import page as page_module
from tests.unit.ui.conftest import DEMO
from tests.unit.ui.test_page_source import make_source
from tests.unit.ui.test_pages import HOSTILE_TEXTS, is_harmless

PACK = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}
"""


@pytest.fixture(scope="module")
def client(demo_source: RecordedSource) -> TestClient:
    """A client of the pages of the demo's recorded cluster."""
    setup = build_setup()
    return TestClient(make_app(demo_source, answers=make_answers(demo_source, lambda: setup)))


QUESTIONS: dict[str, tuple[dict[str, str], list[str]]] = {
    "drain": ({"drain": "general-a1"}, ["--drain", "general-a1"]),
    "lose": (
        {"lose": "topology.kubernetes.io/zone=eu-1a"},
        ["--lose", "topology.kubernetes.io/zone=eu-1a"],
    ),
    "fail and preempt": ({"remove": "general-b1", "preempt": "on"}, ["--remove", "general-b1", "--preempt"]),
    "add": ({"add": "3", "like": "gpu-a1"}, ["--add", "3", "--like", "gpu-a1"]),
    "scale": (
        {"workload": "replicaset/shop/api-7f4b", "replicas": "9"},
        ["--scale", "replicaset/api-7f4b=9", "-n", "shop"],
    ),
    "configuration": ({"strategy": "own", "config": PACK}, ["--config", "FILE"]),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_document_has_what_the_command_line_prints(client: TestClient, name: str, tmp_path: Path) -> None:
    query, flags = QUESTIONS[name]
    file = tmp_path / "scheduler.yaml"
    file.write_text(PACK)
    arguments = ["-f", str(DEMO), *(str(file) if flag == "FILE" else flag for flag in flags), "-o", "json"]
    printed = CliRunner().invoke(what_if_command, arguments)
    assert printed.exit_code == 0
    outcome = client.get("/ui/data/what-if", params=query).json()["outcome"]
    assert outcome == json.loads(printed.stdout)
    assert outcome["moved"]


def test_the_page_has_the_answer_and_the_command_line(client: TestClient) -> None:
    page = client.get("/ui/what-if?drain=general-a1&strategy=MostAllocated")
    assert page.status_code == 200
    assert "extender what-if -f cluster.yaml --drain general-a1 --config scheduler.yaml</code>" in page.text
    assert "type: MostAllocated" in page.text
    assert "left without a node" in page.text
    assert '<a href="/ui/pods/kube-system/coredns-7db6-5zklp">' in page.text
    assert 'data-document="/ui/data/what-if?drain=general-a1&amp;strategy=MostAllocated"' in page.text


def test_without_a_question_the_page_has_only_the_form(client: TestClient) -> None:
    page = client.get("/ui/what-if")
    assert page.status_code == 200
    assert '<option value="replicaset/shop/api-7f4b">' in page.text
    assert '<option value="topology.kubernetes.io/zone=eu-1a">' in page.text
    assert "Answer</h2>" not in page.text
    assert '<option value="example.com/pool=gpu">' in page.text
    assert "no such label" not in page.text


def test_without_a_question_the_page_has_questions_about_this_cluster(client: TestClient) -> None:
    page = client.get("/ui/what-if").text
    addresses = re.findall(r'href="(/ui/what-if\?[^"#]+)#result"', page)
    assert addresses == [
        "/ui/what-if?drain=general-a1",
        "/ui/what-if?lose=topology.kubernetes.io/zone%3Deu-1a",
        "/ui/what-if?add=1&amp;like=general-a1",
        "/ui/what-if?preempt=on",
    ]
    for address in addresses:
        answer = client.get(address.replace("&amp;", "&"))
        assert "Answer</h2>" in answer.text
        assert "#result" not in answer.text.partition('<div id="result">')[2]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("drain=general-a9", "--drain general-a9: there is no such node; did you mean"),
        ("add=x&like=gpu-a1", "Add nodes: &#39;x&#39;; want a number from 1 to 200"),
        ("strategy=own&config=kind: Pod", "Pod"),
        ("strategy=own&config=[", "scheduler.yaml"),
        ("workload=deployment/shop/none&replicas=1", "namespace shop has no pod of this workload"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(client: TestClient, query: str, error: str) -> None:
    page = client.get(f"/ui/what-if?{query}")
    assert page.status_code == 400
    assert "The question cannot be answered" in page.text
    assert error in page.text
    document = client.get(f"/ui/data/what-if?{query}")
    assert document.status_code == 400
    assert document.json()["errors"]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_hostile_question_is_shown_as_text(client: TestClient, text: str) -> None:
    for field in ("drain", "like", "config"):
        page = client.get("/ui/what-if", params={field: text, "preempt": "on"})
        assert is_harmless(page.text, text)


def test_without_answers_there_is_no_such_page(demo_source: RecordedSource) -> None:
    client = TestClient(make_app(demo_source))
    assert client.get("/ui/what-if").status_code == 404
    assert "What if" not in client.get("/ui/").text


@pytest.fixture
def slow_client(monkeypatch: pytest.MonkeyPatch, demo_source: RecordedSource) -> TestClient:
    """A client that gets the progress of a question after each step, which is followed by a pause."""
    monkeypatch.setattr(answers_module, "_SLICE_SECONDS", 0.0)
    monkeypatch.setattr(page_module, "_PROGRESS_SECONDS", 0.0)
    setup = build_setup()
    answers = make_answers(demo_source, lambda: setup)
    answers.pause_factor = 10.0  # without pauses, the answer may come before the page reads the progress
    return TestClient(make_app(demo_source, answers=answers))


def test_the_page_shows_the_progress_before_the_answer(slow_client: TestClient) -> None:
    page = slow_client.get("/ui/what-if?drain=general-a2&add=1&like=gpu-a1")
    before, _, after = page.text.partition("Answer</h2>")
    assert page.status_code == 200
    progress = re.findall(r'<p class="progress" role="status">([^<]*)</p>\n', before)
    assert any(line.endswith(", after 0 s of computing time; the limit is 30 s.") for line in progress)
    assert before.count('<form id="question"') == 1
    assert after.endswith("</html>")
    assert "left without a node" in after


def test_a_question_that_takes_too_long_ends_with_its_error(
    slow_client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status is already sent."""
    monkeypatch.setattr(answers_module, "MAX_BUSY_SECONDS", 0.0)
    page = slow_client.get("/ui/what-if?drain=general-a3")
    assert "takes more than 0 s of computing time: Nodes are changed; change less at once" in page.text
    assert "--drain general-a3</code>" in page.text
    assert page.text.endswith("</html>")


def test_an_internal_error_ends_the_page_with_a_message(
    slow_client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(page_module, "make_answer_view", lambda *_: 1 // 0)
    page = slow_client.get("/ui/what-if?drain=general-b2")
    assert "<li>internal error: ZeroDivisionError</li>" in page.text
    assert page.text.endswith("</html>")
    assert [record.getMessage() for record in caplog.records] == ["Cannot answer a question"]


def test_the_answer_about_a_drain_says_that_budgets_are_not_recorded(client: TestClient) -> None:
    note = "not recorded: poddisruptionbudgets; evictions are answered as if there were none"
    assert note in client.get("/ui/what-if?drain=general-a1").text
    assert note not in client.get("/ui/what-if?remove=general-a1").text


def test_the_answer_names_the_kinds_of_the_claims_that_were_not_read() -> None:
    """Otherwise the claim of the pod that waits would seem not to exist."""
    source = make_source(
        "apiVersion: v1\nkind: List\nrecordedKinds: [Node, Pod]\nunreadableKinds: {PersistentVolumeClaim: grant it}\n"
        "items:\n"
        "- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, pods: 9}}}\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: d}, spec: {containers: [{name: a}], "
        "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}\n"
    )
    setup = build_setup()
    page = TestClient(make_app(source, answers=make_answers(source, lambda: setup))).get("/ui/what-if?add=1&like=n1")
    assert "not readable: persistentvolumeclaims; grant it" in page.text


def test_only_the_pods_for_which_nothing_changes_are_folded(client: TestClient) -> None:
    page = client.get("/ui/what-if?drain=general-a1").text
    changes, _, rest = page.partition("<summary>Waiting before and after (4)</summary>")
    assert "<h2>Placed (4)</h2>" in changes
    folded, end, _ = rest.partition("</details>")
    assert folded.count("<tr>") == 1 + 4
    assert end
