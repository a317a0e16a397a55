"""The names a server answers to: no name that others can make point here passes the guard."""

from __future__ import annotations

import json
import socket
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.web.guard import Hosts, hosts_of

from .test_requests import through_guard

LOOPBACK = ["127.0.0.1", "127.0.0.7", "localhost", "::1"]
BEYOND = ["0.0.0.0", "::", "192.0.2.7", "127.1", "workstation"]
OWN = "Box.example.org"  # what the machine calls itself


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: OWN)


def status_of(host: str, hosts: Hosts) -> tuple[int, str]:
    """What the guard answers to a request for a host, 200 if it lets it pass."""
    headers = [(b"host", host.encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    asked, sent = through_guard(scope, hosts)
    if asked:
        return 200, ""
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


def in_brackets(address: Any) -> str:
    return f"[{address}]" if isinstance(address, IPv6Address) else str(address)


ADDRESSES = st.one_of(st.builds(IPv4Address, st.integers(0, 2**32 - 1)), st.ip_addresses(v=6))
LABELS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=12)
NAMES = st.one_of(
    st.lists(LABELS, min_size=1, max_size=4).map(".".join),
    st.sampled_from(
        ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "1.2.3", "0x7f.1",
         "2130706433", "127.1", "box.example.org.evil", "box.evil", "example.org", "local",
         "notbox.local", "box.local.evil", "1.2.3.4.5", "256.1.1.1", "01.02.03.04"]
    ),
)  # fmt: skip
PORTS = st.sampled_from(["", ":80", ":7860", ":65535"])


def check(where: str, name: str, address: Any, port: str) -> None:
    """Beyond this machine all numbers pass, on it none but its own; of names only those that are known."""
    hosts = hosts_of(where, ["Images.example.org"])
    known = {"localhost", "images.example.org", where}
    near = where in LOOPBACK
    if not near:
        known |= {"box.example.org", "box", "box.local"}
        assert status_of(in_brackets(address) + port, hosts)[0] == 200
    elif not address.is_loopback:
        assert status_of(in_brackets(address) + port, hosts)[0] == 421
    for each in known:
        if ":" not in each:
            assert status_of(each.upper() + port, hosts)[0] == 200
    is_number = name.count(".") == 3 and hosts.any_address and hosts.know(name)
    if name not in known and not is_number and name != "127.0.0.1":
        status, said = status_of(name + port, hosts)
        assert status == 421
        assert near or said.endswith(f"or start it with --name {name}.")


@given(st.sampled_from(LOOPBACK + BEYOND), NAMES, ADDRESSES, PORTS)
@settings(max_examples=40)
def test_names_that_others_can_make_point_here_are_refused(where, name, address, port) -> None:
    check(where, name, address, port)


@pytest.mark.slow
@given(st.sampled_from(LOOPBACK + BEYOND), NAMES, ADDRESSES, PORTS)
@settings(max_examples=3000, deadline=None)
def test_three_thousand_hosts(where, name, address, port) -> None:
    check(where, name, address, port)


def test_no_other_machine_is_asked_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("the network was asked")

    for name in ("getfqdn", "gethostbyaddr", "gethostbyname", "getaddrinfo"):
        monkeypatch.setattr(socket, name, asked)
    assert hosts_of("0.0.0.0").know("box.local")


@pytest.mark.parametrize("name", ["", "a b", "http://a", "a:80", "a/b", "*", "-a", "a."])
def test_what_is_no_name_is_refused(name: str) -> None:
    result = CliRunner().invoke(cli.app, ["serve", "--name", name])
    assert result.exit_code == 2
    assert "--name must be a name such as images.example.org" in result.stderr
