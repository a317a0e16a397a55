"""The names that the server answers to.

A page of somebody else can make its own name point at this machine (DNS rebinding), and a browser then lets
it ask here.  Numbers of addresses cannot be made to point elsewhere; names must be known.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

_OWN = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Hosts:
    """What may stand in the Host header, without its port.

    Attributes
    ----------
    names : frozenset of str
        In small letters; addresses of IPv6 without brackets.
    any_address : bool
        Whether every number of an address will do, too.
    """

    names: frozenset[str]
    any_address: bool = False

    def know(self, name: str) -> bool:
        """Whether this server is meant."""
        return name in self.names or (self.any_address and is_address(name))

    def why_not(self, name: str) -> str:
        """Return what to tell who asked for another name."""
        if not self.any_address:
            return "This page is for this machine alone."
        return (
            f"This server does not go by the name {name}. Open it by the number of its address, or start "
            f"it with --name {name}."
        )


def hosts_of(host: str, names: Iterable[str] = ()) -> Hosts:
    """Return what a server that listens at an address answers to, ``names`` being those it was given.

    At a loopback address, this machine alone; at others every number of an address, and the names that
    the machine gives itself.  No other machine is asked for a name.
    """
    given = frozenset(name.lower() for name in (host, *names))
    if is_loopback(host):
        return Hosts(_OWN | given)
    own = socket.gethostname().lower()
    short = own.partition(".")[0]
    return Hosts(_OWN | given | {own, short, f"{short}.local"}, any_address=True)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_address(name: str) -> bool:
    """Whether a host is written as a number, 192.0.2.1 or 2001:db8::1."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
