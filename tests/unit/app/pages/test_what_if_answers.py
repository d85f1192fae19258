"""The answers of the page What if use new plugins, and the configuration in force."""

import asyncio

import pytest

from extender.app.pages.what_if_answers import make_answers
from extender.app.wiring import build_setup, build_setup_from_document, make_runtime
from extender.cache.cache import Cache
from extender.config.errors import ConfigError
from extender.ui.page_source import PageSource
from extender.ui.what_if.question import Question
from tests.build import make_node, make_pod

DOCUMENT = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "another"}],
}


def make_source() -> PageSource:
    """Return a cluster with a node and a pod of the scheduler `another`."""
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    cache.add_or_update_pod(make_pod("p", spec={"schedulerName": "another"}))
    return PageSource("a", cache, dict, make_runtime, lambda: 0.0)


def test_the_configuration_in_force_is_that_of_the_moment_of_the_question() -> None:
    setups = [build_setup()]
    answers = make_answers(make_source(), lambda: setups[-1])
    assert list(answers.make_profiles("")) == ["default-scheduler"]
    setups.append(build_setup_from_document(DOCUMENT, "scheduler.yaml"))
    assert list(answers.make_profiles("")) == ["another"]


def test_the_pods_of_other_schedulers_are_placed_with_the_first_profile() -> None:
    question = Question(add="1", like="n1")
    setup = build_setup()
    outcome = asyncio.run(make_answers(make_source(), lambda: setup).answer(question)).outcome
    assert outcome.moved == []
    answers = make_answers(make_source(), lambda: setup, ["another"])
    assert [moved.pod for moved in asyncio.run(answers.answer(question)).outcome.moved] == ["default/p"]


def test_plugins_are_not_those_of_the_scheduler() -> None:
    setup = build_setup()
    profile = make_answers(make_source(), lambda: setup).make_profiles("")["default-scheduler"]
    assert profile.plugins.keys() == setup.first_profile.plugins.keys()
    assert all(plugin is not setup.first_profile.plugins[name] for name, plugin in profile.plugins.items())


def test_an_invalid_configuration_is_an_error() -> None:
    setup = build_setup()
    with pytest.raises(ConfigError, match=r"scheduler\.yaml"):
        make_answers(make_source(), lambda: setup).make_profiles("[")
