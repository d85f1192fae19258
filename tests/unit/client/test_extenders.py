"""Configured extenders: their order, and how they are spoken to over TLS."""

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from extender.client.extender_calls import ExtenderError
from extender.client.extenders import in_order
from extender.config.faults import ConfigError
from extender.config.model import Extender, TLSConfig
from tests.build import a_pod
from tests.unit.client.scripted import Reply, Server
from tests.unit.client.virtual_time import run

POD = a_pod("web")


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(ca: trustme.CA) -> ssl.SSLContext:
    """A server at 127.0.0.1 that asks for a certificate and also takes callers without one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1", "extender.example").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@pytest.fixture
def files(ca: trustme.CA, tmp_path: Path) -> dict[str, str]:
    """Where the authority and a client certificate lie."""
    client = ca.issue_cert("scheduler.example", common_name="scheduler")
    found = {name: str(tmp_path / name) for name in ("ca", "cert", "key")}
    ca.cert_pem.write_to_path(found["ca"])
    client.cert_chain_pems[0].write_to_path(found["cert"])
    client.private_key_pem.write_to_path(found["key"])
    return found


def bound(tls: ssl.SSLContext | None, config: dict[str, Any]) -> str:
    """Has a pod bound by an extender at 127.0.0.1; gives the name in the caller's certificate, or what went wrong."""

    async def main() -> str:
        async with Server(tls=tls) as server:
            (extender,) = in_order([Extender(url_prefix=server.url, bind_verb="bind", **config)])
            server.on("POST /bind", Reply(body={"Error": ""}))
            try:
                await extender.bind(POD, "n1")
            except ExtenderError as wrong:
                return str(wrong)
            finally:
                await extender.close()
            return f"by {server.asked[0].client or 'nobody'}"

    return run(main())


def test_https_without_an_authority_verifies_nothing(tls: ssl.SSLContext) -> None:
    """Source: F004."""
    assert bound(tls, {"enable_https": True}) == "by nobody"


def test_an_https_address_alone_is_verified_as_usual(tls: ssl.SSLContext) -> None:
    assert "certificate verify failed" in bound(tls, {})


def test_insecure_verifies_nothing(tls: ssl.SSLContext) -> None:
    assert bound(tls, {"tls_config": TLSConfig(insecure=True)}) == "by nobody"


def test_an_authority_is_verified_and_a_certificate_shown(tls: ssl.SSLContext, files: dict[str, str]) -> None:
    config = TLSConfig(ca_file=files["ca"], cert_file=files["cert"], key_file=files["key"])
    assert bound(tls, {"enable_https": True, "tls_config": config}) == "by scheduler"


def test_data_comes_before_files(tls: ssl.SSLContext, files: dict[str, str]) -> None:
    """Source: F005."""
    data = {name: Path(path).read_bytes() for name, path in files.items()}
    config = TLSConfig(
        ca_file="/nowhere", cert_file="/nowhere", key_file="/nowhere",
        ca_data=data["ca"], cert_data=data["cert"], key_data=data["key"],
    )  # fmt: skip
    assert bound(tls, {"enable_https": True, "tls_config": config}) == "by scheduler"


def test_another_authority_is_not_trusted(tls: ssl.SSLContext) -> None:
    config = TLSConfig(ca_data=trustme.CA().cert_pem.bytes())
    assert "certificate verify failed" in bound(tls, {"enable_https": True, "tls_config": config})


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("extender.example", "by nobody"), ("other.example", "Hostname mismatch")],
    ids=["its own", "another"],
)
def test_the_name_to_expect_may_be_given(tls: ssl.SSLContext, ca: trustme.CA, name: str, outcome: str) -> None:
    config = TLSConfig(ca_data=ca.cert_pem.bytes(), server_name=name)
    assert outcome in bound(tls, {"enable_https": True, "tls_config": config})


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            TLSConfig(insecure=True, ca_file="ca.pem"),
            "extenders[0].tlsConfig: specifying a root certificates file with the insecure flag is not allowed",
        ),
        (TLSConfig(ca_file="/nowhere/ca.pem"), "extenders[0].tlsConfig: [Errno 2] No such file or directory: "),
        (TLSConfig(ca_data=base64.b64decode("AAAA")), "extenders[0].tlsConfig: "),
    ],
    ids=["an authority and no verification", "a file that is not there", "an authority that is none"],
)
def test_settings_that_cannot_be_used_are_refused_at_the_start(config: TLSConfig, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        in_order([Extender(url_prefix="https://127.0.0.1", enable_https=True, tls_config=config)])
    assert str(refused.value).startswith(says)


def test_those_that_may_fail_are_asked_last() -> None:
    """Source: F011."""
    configured = [Extender(url_prefix=name, ignorable=name.startswith("i")) for name in ("i1", "a", "i2", "b")]
    assert [extender.name for extender in in_order(configured)] == ["a", "b", "i1", "i2"]


def test_nobody_there_is_told() -> None:
    async def main() -> None:
        async with Server() as server:
            url = server.url
        (extender,) = in_order([Extender(url_prefix=url, bind_verb="bind")])
        with pytest.raises(ExtenderError, match=f'^Post "{url}/bind": '):
            await extender.bind(POD, "n1")
        await extender.close()

    run(main())
