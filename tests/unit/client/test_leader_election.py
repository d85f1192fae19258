"""The state machine of leader election: times and leases in, writes out."""

from typing import Any

import msgspec
import pytest

from extender.client.leader_election import Election, Lease, LeaseWrite, decode_lease
from extender.config.model import LeaderElection

NOON = 1_700_000_000.0  # 2023-11-14T22:13:20Z
HOUR = 3600.0


def make_lease(
    holder: str, *, renewed: str = "x", transitions: int = 3, duration: int = 15, version: str = "7"
) -> Lease:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "acquireTime": "2023-01-01T00:00:00.000000Z",
        "renewTime": renewed,
        "leaseTransitions": transitions,
    }
    metadata = {"name": "kube-scheduler", "namespace": "kube-system", "resourceVersion": version}
    return decode_lease(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def election() -> Election:
    return Election(LeaderElection(), "me")


def accept(election_state: Election, write: LeaseWrite | None, sent_at: float, now: float | None = None) -> None:
    """Accept the write of the state machine."""
    assert write is not None
    election_state.confirm_write(
        decode_lease(msgspec.json.encode(write.body)), sent_at, sent_at if now is None else now
    )


def leader(now: float = 100.0) -> Election:
    election_state = election()
    accept(election_state, election_state.observe_lease(None, now, NOON), now)
    return election_state


def spec_of(write: LeaseWrite | None) -> dict[str, Any]:
    assert write is not None
    return dict(write.body["spec"])


def test_a_missing_lease_is_created() -> None:
    write = election().observe_lease(None, 100.0, NOON)
    assert write is not None
    assert write.create
    assert write.body["metadata"] == {"name": "kube-scheduler", "namespace": "kube-system"}
    assert write.body["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
        "leaseTransitions": 0,
    }


def test_a_lease_that_was_deleted_is_created_without_the_resource_version_of_the_old_one() -> None:
    """The API server accepts no object with a resource version to create."""
    election_state = election()
    accept(election_state, election_state.observe_lease(make_lease("me"), 100.0, NOON), 100.0)
    write = election_state.observe_lease(None, 102.0, NOON)
    assert write is not None
    assert (write.create, write.body["metadata"]) == (True, {"name": "kube-scheduler", "namespace": "kube-system"})


def test_nobody_leads_before_a_write_was_accepted() -> None:
    election_state = election()
    assert not election_state.may_act(100.0)
    election_state.observe_lease(None, 100.0, NOON)
    assert not election_state.may_act(100.0)


def test_a_lease_held_by_another_is_left_alone_until_it_has_not_changed_for_its_duration() -> None:
    election_state = election()
    assert election_state.observe_lease(make_lease("other", renewed="1"), 100.0, NOON) is None
    assert election_state.observe_lease(make_lease("other", renewed="1"), 114.9, NOON) is None
    assert election_state.observe_lease(make_lease("other", renewed="2"), 115.5, NOON) is None
    assert election_state.observe_lease(make_lease("other", renewed="2"), 130.4, NOON) is None
    taken = election_state.observe_lease(make_lease("other", renewed="2", version="9"), 130.6, NOON)
    assert spec_of(taken)["holderIdentity"] == "me"
    assert spec_of(taken)["leaseTransitions"] == 4
    assert taken is not None
    assert taken.body["metadata"]["resourceVersion"] == "9"
    assert not taken.create


def test_the_holder_s_own_duration_counts() -> None:
    election_state = election()
    assert election_state.observe_lease(make_lease("other", duration=60), 100.0, NOON) is None
    assert election_state.observe_lease(make_lease("other", duration=60), 159.0, NOON) is None
    assert election_state.observe_lease(make_lease("other", duration=60), 161.0, NOON) is not None


def test_a_released_lease_is_taken_at_once() -> None:
    assert spec_of(election().observe_lease(make_lease("", duration=1), 100.0, NOON))["leaseTransitions"] == 4


def test_a_renewal_keeps_when_and_how_often_the_lease_was_acquired() -> None:
    election_state = election()
    accept(election_state, election_state.observe_lease(make_lease("", transitions=3), 100.0, NOON), 100.0)
    renewal = spec_of(election_state.make_renewal_without_get(102.0, NOON + 2))
    assert renewal["acquireTime"] == "2023-11-14T22:13:20.000000Z"
    assert renewal["renewTime"] == "2023-11-14T22:13:22.000000Z"
    assert renewal["leaseTransitions"] == 4


def test_after_a_restart_with_the_same_identity_the_lease_is_renewed() -> None:
    assert spec_of(election().observe_lease(make_lease("me"), 100.0, NOON))["leaseTransitions"] == 3


@pytest.mark.parametrize(
    ("at", "may"),
    [(100.0, True), (109.9, True), (110.0, False), (130.0, False)],
    ids=["at once", "just before the renew deadline", "at the deadline", "long after"],
)
def test_fault_17_the_leader_may_act_until_the_renew_deadline_after_its_last_renewal(at: float, may: bool) -> None:
    assert leader(100.0).may_act(at) is may


def test_fault_17_the_renew_deadline_counts_from_when_the_renewal_was_sent() -> None:
    election_state = election()
    accept(election_state, election_state.observe_lease(None, 100.0, NOON), sent_at=100.0, now=104.0)
    assert election_state.may_act(109.9)
    assert not election_state.may_act(110.1)


def test_fault_17_another_candidate_takes_over_only_after_the_leader_has_stopped() -> None:
    first, second = leader(100.0), election()
    held = make_lease("me")
    second.identity = "other"
    assert second.observe_lease(held, 100.0, NOON) is None
    times = [100.0 + step / 10 for step in range(200)]
    taken = next(at for at in times if second.observe_lease(held, at, NOON) is not None)
    stopped = next(at for at in times if not first.may_act(at))
    assert (stopped, taken) == (110.0, 115.0)


def test_fault_18_after_a_stop_of_30_seconds_the_leader_may_not_act_and_reads_the_lease_first() -> None:
    election_state = leader(100.0)
    assert not election_state.may_act(130.0)
    assert election_state.make_renewal_without_get(130.0, NOON) is None
    assert election_state.observe_lease(make_lease("other"), 130.0, NOON) is None
    assert not election_state.leading


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["an hour on", "an hour back"])
def test_fault_19_a_wall_clock_that_jumps_changes_nothing(jump: float) -> None:
    election_state = leader(100.0)
    assert election_state.make_renewal_without_get(102.0, NOON + jump) is not None
    assert election_state.may_act(102.0)
    waiting = election()
    other = make_lease("other", renewed="2023-11-14T23:13:20.000000Z")
    assert waiting.observe_lease(other, 100.0, NOON + jump) is None
    assert waiting.observe_lease(other, 114.0, NOON - jump) is None
    assert waiting.observe_lease(other, 116.0, NOON + jump) is not None


def test_fault_20_a_deleted_lease_is_left_to_its_holder_until_it_would_have_expired() -> None:
    election_state = election()
    assert election_state.observe_lease(make_lease("other"), 100.0, NOON) is None
    assert election_state.observe_lease(None, 114.9, NOON) is None
    write = election_state.observe_lease(None, 115.0, NOON)
    assert write is not None
    assert write.create


def test_fault_20_a_deleted_lease_that_was_released_is_created_at_once() -> None:
    election_state = election()
    election_state.observe_lease(make_lease(""), 100.0, NOON)
    write = election_state.observe_lease(None, 101.0, NOON)
    assert write is not None
    assert write.create


def test_fault_20_a_deleted_lease_is_created_again_by_its_holder() -> None:
    election_state = leader(100.0)
    write = election_state.observe_lease(None, 103.0, NOON)
    assert write is not None
    assert write.create
    assert "resourceVersion" not in write.body["metadata"]
    accept(election_state, write, 103.0)
    assert election_state.may_act(110.0)


def test_fault_20_a_holder_changed_by_hand_ends_the_lead_at_once() -> None:
    election_state = leader(100.0)
    assert election_state.observe_lease(make_lease("other"), 102.0, NOON) is None
    assert not election_state.may_act(102.0)
    assert election_state.holder == "other"


def test_fault_20_a_holder_cleared_by_hand_is_acquired_again() -> None:
    election_state = leader(100.0)
    write = election_state.observe_lease(make_lease("", transitions=3), 102.0, NOON)
    assert not election_state.may_act(102.0)
    assert spec_of(write)["leaseTransitions"] == 4
    accept(election_state, write, 102.0)
    assert election_state.may_act(103.0)


def test_fault_21_a_release_clears_the_holder_and_ends_the_lead() -> None:
    election_state = leader(100.0)
    write = election_state.make_release_write(make_lease("me", transitions=3, version="8"), NOON)
    assert spec_of(write) == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "leaseTransitions": 3,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
    }
    assert not election_state.may_act(100.0)


def test_a_lease_that_another_candidate_holds_is_not_released() -> None:
    assert leader(100.0).make_release_write(make_lease("other"), NOON) is None


def test_a_candidate_retries_within_the_retry_period_and_when_the_lease_expires() -> None:
    election_state = election()
    assert (election_state.compute_retry_delay(100.0, 0.0), election_state.compute_retry_delay(100.0, 0.999)) == (
        1.0,
        pytest.approx(2.0, abs=0.01),
    )
    election_state.observe_lease(make_lease("other"), 100.0, NOON)
    assert election_state.compute_retry_delay(114.7, 0.5) == pytest.approx(0.3)


def test_a_leader_is_unhealthy_long_after_the_lease_has_expired() -> None:
    election_state = leader(100.0)
    assert election_state.is_healthy(134.0)
    assert not election_state.is_healthy(136.0)
    assert election().is_healthy(1e9)


def test_a_lease_with_null_fields_can_be_read() -> None:
    lease = decode_lease(
        b'{"metadata":{"name":"x"},"spec":{"holderIdentity":null,"renewTime":null,"leaseDurationSeconds":null}}'
    )
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("", 0)
