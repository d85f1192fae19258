"""The flags of `extender schedule` are those of kube-scheduler."""

from extender.cli.schedule_flags import FLAGS, GROUPS

UPSTREAM = """
allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig authentication-skip-lookup
authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure authorization-always-allow-paths
authorization-kubeconfig authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
bind-address cert-dir client-ca-file config contention-profiling disable-http2-serving disabled-metrics
emulated-version feature-gates help http2-max-streams-per-connection kube-api-burst kube-api-content-type kube-api-qps
kubeconfig leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-resource-lock
leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period log-flush-frequency
log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format master
min-compatibility-version permit-address-sharing permit-port-sharing pod-max-in-unschedulable-pods-duration profiling
requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
requestheader-uid-headers requestheader-username-headers secure-port show-hidden-metrics-for-version tls-cert-file
tls-cipher-suites tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key v version vmodule
write-config-to
"""

# Flags that kube-scheduler does not have.
OWN_FLAGS = ["ui"]


def test_the_flags_are_those_of_kube_scheduler_and_our_own() -> None:
    assert sorted(FLAGS) == sorted([*UPSTREAM.split(), *OWN_FLAGS])


def test_the_flags_are_in_the_groups_of_kube_scheduler() -> None:
    assert list(GROUPS) == [
        "Misc", "Secure serving", "Authentication", "Authorization", "Deprecated", "Leader election", "Feature gate",
        "Metrics", "Logs", "Global",
    ]  # fmt: skip
