"""Configured extenders: their order, and TLS."""

import asyncio
import base64
import re
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
import pytest
import trustme

from extender.client.extender import ExtenderArgs, build_extenders
from extender.client.extender_transport import CHECK_SECONDS, ExtenderError
from extender.config.errors import ConfigError
from extender.config.model import Extender, TLSConfig
from tests.build import make_pod
from tests.unit.client.scripted_server import Reply, ScriptedServer
from tests.unit.client.virtual_time import run

POD = make_pod("web")


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(ca: trustme.CA) -> ssl.SSLContext:
    return make_server_context(ca)


def make_server_context(ca: trustme.CA) -> ssl.SSLContext:
    """Return the context of a server at 127.0.0.1 with optional client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1", "extender.example").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@pytest.fixture
def files(ca: trustme.CA, tmp_path: Path) -> dict[str, str]:
    """Files with the CA and a client certificate."""
    client = ca.issue_cert("scheduler.example", common_name="scheduler")
    paths = {name: str(tmp_path / name) for name in ("ca", "cert", "key")}
    ca.cert_pem.write_to_path(paths["ca"])
    client.cert_chain_pems[0].write_to_path(paths["cert"])
    client.private_key_pem.write_to_path(paths["key"])
    return paths


def bind_result(tls: ssl.SSLContext | None, config: dict[str, Any]) -> str:
    """Call bind of an extender at 127.0.0.1; return the name in the client certificate, or the error."""

    async def main() -> str:
        async with ScriptedServer(tls=tls) as server:
            (extender,) = build_extenders([Extender(url_prefix=server.url, bind_verb="bind", **config)])
            server.respond("POST /bind", Reply(body={"Error": ""}))
            try:
                await extender.bind(POD, "n1")
            except ExtenderError as error:
                return str(error)
            finally:
                await extender.close()
            return f"by {server.requests[0].client or 'nobody'}"

    return run(main())


def test_https_without_a_ca_verifies_nothing(tls: ssl.SSLContext) -> None:
    """Source: pkg/scheduler/extender.go, makeTransport (1.36)."""
    assert bind_result(tls, {"enable_https": True}) == "by nobody"


def test_an_https_url_alone_is_verified_by_the_system_s_cas(tls: ssl.SSLContext) -> None:
    assert "certificate verify failed" in bind_result(tls, {})


@pytest.mark.parametrize("config", [{}, {"enable_https": True}], ids=["the system's CAs", "no CA"])
def test_a_read_of_a_tls_connection_allocates_at_most_a_record(
    ca: trustme.CA, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, config: dict[str, Any]
) -> None:
    ca.cert_pem.write_to_path(str(tmp_path / "system"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system"))
    read, sizes = ssl.SSLObject.read, set()

    def record_read(self: ssl.SSLObject, size: int = 1024, buffer: Any = None) -> Any:
        if not self.server_side:
            sizes.add(size)
        return read(self, size, buffer)

    monkeypatch.setattr(ssl.SSLObject, "read", record_read)
    assert bind_result(tls, config) == "by nobody"
    assert sizes == {16_384}


def test_insecure_verifies_nothing(tls: ssl.SSLContext) -> None:
    assert bind_result(tls, {"tls_config": TLSConfig(insecure=True)}) == "by nobody"


def test_the_server_is_verified_by_the_ca_and_gets_the_client_certificate(
    tls: ssl.SSLContext, files: dict[str, str]
) -> None:
    config = TLSConfig(ca_file=files["ca"], cert_file=files["cert"], key_file=files["key"])
    assert bind_result(tls, {"enable_https": True, "tls_config": config}) == "by scheduler"


def test_data_comes_before_files(tls: ssl.SSLContext, files: dict[str, str]) -> None:
    """Source: kube-scheduler/config/v1/types.go, ExtenderTLSConfig (1.36)."""
    data = {name: Path(path).read_bytes() for name, path in files.items()}
    config = TLSConfig(
        ca_file="/nowhere", cert_file="/nowhere", key_file="/nowhere",
        ca_data=data["ca"], cert_data=data["cert"], key_data=data["key"],
    )  # fmt: skip
    assert bind_result(tls, {"enable_https": True, "tls_config": config}) == "by scheduler"


def test_rotated_files_are_read_again(files: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """A certificate without its key, as in the middle of a rotation, is not used, and the error is logged once."""
    new_ca = trustme.CA()
    new_client = new_ca.issue_cert("new.example", common_name="new")

    async def main() -> str:
        async with ScriptedServer(tls=make_server_context(new_ca)) as server:
            config = TLSConfig(ca_file=files["ca"], cert_file=files["cert"], key_file=files["key"])
            (extender,) = build_extenders([Extender(url_prefix=server.url, bind_verb="bind", tls_config=config)])
            server.respond("POST /bind", Reply(body={"Error": ""}))
            new_ca.cert_pem.write_to_path(files["ca"])
            new_client.cert_chain_pems[0].write_to_path(files["cert"])
            for _ in range(3):
                with pytest.raises(ExtenderError, match="certificate verify failed"):
                    await extender.bind(POD, "n1")
                await asyncio.sleep(CHECK_SECONDS)
            new_client.private_key_pem.write_to_path(files["key"])
            await extender.bind(POD, "n1")
            await extender.close()
            return server.requests[0].client

    assert run(main()) == "new"
    assert [record.message for record in caplog.records] == ["TLS files cannot be read again; the old ones stay in use"]


def test_another_ca_is_not_trusted(tls: ssl.SSLContext) -> None:
    config = TLSConfig(ca_data=trustme.CA().cert_pem.bytes())
    assert "certificate verify failed" in bind_result(tls, {"enable_https": True, "tls_config": config})


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("extender.example", "by nobody"), ("other.example", "Hostname mismatch")],
    ids=["its own", "another"],
)
def test_the_expected_server_name_may_be_configured(
    tls: ssl.SSLContext, ca: trustme.CA, name: str, outcome: str
) -> None:
    config = TLSConfig(ca_data=ca.cert_pem.bytes(), server_name=name)
    assert outcome in bind_result(tls, {"enable_https": True, "tls_config": config})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (TLSConfig(ca_file="/nowhere/ca.pem"), "extenders[0].tlsConfig: [Errno 2] No such file or directory: "),
        (TLSConfig(ca_data=base64.b64decode("AAAA")), "extenders[0].tlsConfig: "),
        (TLSConfig(ca_file="/dev/zero"), "extenders[0].tlsConfig: /dev/zero is a device; name a file with text"),
        (
            TLSConfig(cert_file="/dev/zero", key_file="/dev/zero", insecure=True),
            "extenders[0].tlsConfig: /dev/zero is a device; name a file with text",
        ),
    ],
    ids=[
        "a file that is not there",
        "an authority that is none",
        "an endless authority",
        "an endless certificate",
    ],
)
def test_invalid_tls_settings_are_rejected_at_the_start(config: TLSConfig, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_extenders([Extender(url_prefix="https://127.0.0.1", enable_https=True, tls_config=config)])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", ["ca", "cert", "key"])
def test_a_tls_file_of_more_than_16_mib_is_rejected_at_the_start(files: dict[str, str], name: str) -> None:
    with Path(files[name]).open("r+b") as stream:
        stream.truncate(16 * 1024**2 + 1)
    config = TLSConfig(ca_file=files["ca"], cert_file=files["cert"], key_file=files["key"])
    with pytest.raises(ConfigError) as caught:
        build_extenders([Extender(url_prefix="https://127.0.0.1", enable_https=True, tls_config=config)])
    assert str(caught.value) == f"extenders[0].tlsConfig: {files[name]} has more than 16 MiB"


def test_ignorable_extenders_are_called_last() -> None:
    """Source: pkg/scheduler/scheduler.go, buildExtenders (1.36)."""
    configs = [Extender(url_prefix=name, ignorable=name.startswith("i")) for name in ("i1", "a", "i2", "b")]
    assert [extender.name for extender in build_extenders(configs)] == ["a", "b", "i1", "i2"]


def test_an_unreachable_extender_is_reported() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            url = server.url
        (extender,) = build_extenders([Extender(url_prefix=url, bind_verb="bind")])
        with pytest.raises(ExtenderError, match=f'^Post "{url}/bind": connection refused$'):
            await extender.bind(POD, "n1")
        await extender.close()

    run(main())


def test_a_connection_error_is_described_without_objects(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod's condition has the text, and the address of an object would change it in each process."""
    untrusted = bind_result(tls, {"tls_config": TLSConfig(ca_data=trustme.CA().cert_pem.bytes())})
    assert untrusted.partition('/bind": ')[2].startswith("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: ")

    async def reset(*_: Any, **__: Any) -> Any:
        raise RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", reset)  # as uvloop does
    assert bind_result(tls, {}).endswith('bind": unable to perform operation on <TCPTransport>; the handler is closed')


def test_an_extender_that_does_not_speak_tls_or_http_is_described() -> None:
    async def main(scheme: str, response: bytes) -> str:
        async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(response)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

        async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            (extender,) = build_extenders([Extender(url_prefix=f"{scheme}://{address}", bind_verb="bind")])
            with pytest.raises(ExtenderError) as caught:
                await extender.bind(POD, "n1")
            await extender.close()
            return str(caught.value).partition(address)[2]

    no_tls = asyncio.run(main("https", b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    assert re.fullmatch(
        r'/bind": no TLS connection \(\[SSL.*\); is this the port of the extender, and does it have https\?', no_tls
    )
    no_http = asyncio.run(main("http", b"SSH-2.0-OpenSSH\r\n"))
    assert no_http.startswith('/bind": not an HTTP response: Bad status line: ')


SCORES = {
    "Go's form": (b'[{"Host":"a","Score":1},{"Score":-2,"Host":"b"}] more', [("a", 1), ("b", -2)]),
    "missing fields": (b'[{"Host":"a"},{"Score":2},{}]', [("a", 0), ("", 2), ("", 0)]),
    "names in other cases": (b'[{"host":"a","SCORE":1}]', [("a", 1)]),
    "null": (b'[{"Host":null,"Score":1},null]', [("", 1), ("", 0)]),
    "unknown fields": (b'[{"Host":"a","Score":1,"Zone":{}}]', [("a", 1)]),
    "no list": (b"null", []),
    "as many as allowed": (b"[" + b'{"Host":"a"},' * 99_999 + b"{}]", [("a", 0)] * 99_999 + [("", 0)]),
}


def prioritize(body: bytes) -> list[tuple[str, int]]:
    async def main() -> list[tuple[str, int]]:
        async with ScriptedServer() as server:
            (extender,) = build_extenders([Extender(url_prefix=server.url, prioritize_verb="prioritize")])
            server.respond("POST /prioritize", Reply(body=body))
            try:
                priorities = await extender.prioritize(ExtenderArgs(POD, ["a"], list))
            finally:
                await extender.close()
            return [(priority.host, priority.score) for priority in priorities]

    return run(main())


@pytest.mark.parametrize(("body", "scores"), SCORES.values(), ids=SCORES)
def test_scores_that_go_accepts_are_accepted(body: bytes, scores: list[tuple[str, int]]) -> None:
    """Source: kube-scheduler/extender/v1/types.go, HostPriorityList (1.36)."""
    assert prioritize(body) == scores


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[{}" + b",{}" * 100_000 + b"]", "more than 100000 scores"),
        (b'[{"Host":"a","Score":9223372036854775808}]', "score: 9223372036854775808 is not an int64"),
        (b'[{"Host":"a","Score":1.0}]', "score: Expected `int`, got `float`"),
    ],
    ids=["too many", "beyond 64 bits", "a fraction"],
)
def test_scores_are_rejected(body: bytes, message: str) -> None:
    with pytest.raises(ExtenderError) as caught:
        prioritize(body)
    assert str(caught.value) == f"invalid response: {message}"


def call(verb: str, body: bytes, *, has_node_cache: bool = True) -> Any:
    """Call filter, prioritize or preempt of an extender that responds with *body*; return the result."""
    args = ExtenderArgs(POD, ["n1"], list)

    async def main() -> Any:
        async with ScriptedServer() as server:
            config = Extender(server.url, "filter", "preempt", "prioritize", node_cache_capable=has_node_cache)
            (extender,) = build_extenders([config])
            server.respond(f"POST /{verb}", Reply(body=body))
            try:
                return await (extender.preempt(POD, {}) if verb == "preempt" else getattr(extender, verb)(args))
            finally:
                await extender.close()

    return run(main())


TOO_MANY_VALUES = {
    "fields": ("filter", b"{" + b'"":1,' * 1_000_000 + b'"":1}', True, "invalid response: more than 1000000 values"),
    "names": ("filter", b'{"NodeNames":[' + b"0," * 1_000_000 + b"0]}", True, "more than 1000000 values"),
    "scores": ("prioritize", b"[" + b"null," * 1_000_000 + b"{}]", True, "more than 1000000 values"),
    "scores that are null": ("prioritize", b"[" + b"null," * 100_000 + b"{}]", True, "more than 100000 scores"),
    "nodes": ("filter", b'{"Nodes":{"items":[' + b"{}," * 100_000 + b"{}]}}", False, "more than 100000 nodes"),
    "values of nodes": (
        "filter",
        b'{"Nodes":{"items":[' + b"0," * 4_000_000 + b"0]}}",
        False,
        "invalid response: more than 4000000 values",
    ),
    "values of a node with a null": (
        "filter",
        b'{"Nodes":{"items":[{"metadata":{"name":"n1"},"spec":{"taints":[' + b"null," * 100_000 + b"{}]}}]}}",
        False,
        "invalid response: nodes.items[0].spec.taints[0]: Expected `object`, got `null`",
    ),
    "victims": (
        "preempt",
        b'{"NodeNameToMetaVictims":{"n1":{"pods":[' + b"{}," * 50_000 + b"{}]}}}",
        True,
        "NodeNameToMetaVictims: more than 100000 values, and not in Go's form: ",
    ),
}


@pytest.mark.parametrize(("verb", "body", "has_node_cache", "message"), TOO_MANY_VALUES.values(), ids=TOO_MANY_VALUES)
def test_a_response_with_too_many_values_is_rejected(
    verb: str, body: bytes, has_node_cache: bool, message: str
) -> None:
    """Decoding 64 MiB of nulls would take minutes and gigabytes."""
    with pytest.raises(ExtenderError) as caught:
        call(verb, body, has_node_cache=has_node_cache)
    assert message in str(caught.value)


def test_other_tasks_run_while_nodes_are_decoded() -> None:
    nodes = b",".join(b'{"metadata":{"name":"n1"},"status":{"images":[%b{}]}}' % (b"{}," * 10_000) for _ in range(100))

    async def main() -> int:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        (extender,) = build_extenders([Extender("http://127.0.0.1", "filter")])
        respond = asyncio.sleep(0, b'{"Nodes":{"items":[%b]}}' % nodes)
        with patch.object(extender, "_post_args", lambda *_: respond):
            counter = asyncio.create_task(count_turns())
            await extender.filter(ExtenderArgs(POD, ["n1"], list))
        counter.cancel()
        return turns

    assert asyncio.run(main()) > 1


def test_invalid_utf_8_in_a_response_is_replaced() -> None:
    """Source: Go 1.26, encoding/json/decode.go, unquoteBytes."""
    result = call("filter", b'{"NodeNames":["n1"],"FailedNodes":{"n2":"no caf\xe9"}}')
    assert (result.node_names, result.failed) == (["n1"], {"n2": "no caf\ufffd"})


def test_half_a_surrogate_pair_in_a_response_is_replaced() -> None:
    """Python and JavaScript write it so. Source: Go 1.26, encoding/json/decode.go, unquoteBytes."""
    body = rb'{"NodeNames":["n1"],"FailedNodes":{"n2":"no \ud83d"}}'
    result = call("filter", body)
    assert (result.node_names, result.failed) == (["n1"], {"n2": "no \ufffd"})
    with pytest.raises(ExtenderError, match="invalid response: "):
        call("filter", body + b" " * (4 << 20))
