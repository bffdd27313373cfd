"""What a webhook may reach: public addresses only, unless whoever runs Halftide has listed more. Pure; read by settings too.

Whoever may write a webhook could otherwise make Halftide's own machine send requests into the network it stands in: to the
cloud's metadata address, to a database, to the next service (SSRF). The list of what is refused is written out here, and does not
lean on a library's idea of "private", which has changed from version to version. An IPv6 address that carries an IPv4 one inside
(mapped, 6to4, NAT64, ISATAP) is judged by that one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from console.env import SettingError

Address = IPv4Address | IPv6Address
SETTING = "HALFTIDE_WEBHOOK_ALLOW"

# IANA's special-purpose registries, and what clouds serve to their own machines.
REFUSED_V4 = {
    IPv4Network("0.0.0.0/8"): "stands for no address",
    IPv4Network("10.0.0.0/8"): "is private",
    IPv4Network("100.64.0.0/10"): "is private to a provider",
    IPv4Network("127.0.0.0/8"): "is this machine itself",
    IPv4Network("168.63.129.16/32"): "is a cloud's own service",
    IPv4Network("169.254.0.0/16"): "is link-local, where clouds serve metadata",
    IPv4Network("172.16.0.0/12"): "is private",
    IPv4Network("192.0.0.0/24"): "is reserved",
    IPv4Network("192.0.2.0/24"): "is for examples",
    IPv4Network("192.88.99.0/24"): "is reserved",
    IPv4Network("192.168.0.0/16"): "is private",
    IPv4Network("198.18.0.0/15"): "is for tests of networks",
    IPv4Network("198.51.100.0/24"): "is for examples",
    IPv4Network("203.0.113.0/24"): "is for examples",
    IPv4Network("224.0.0.0/4"): "is multicast",
    IPv4Network("240.0.0.0/4"): "is reserved",
}
REFUSED_V6 = {
    IPv6Network("::/128"): "stands for no address",
    IPv6Network("::1/128"): "is this machine itself",
    IPv6Network("fe80::/10"): "is link-local",
    IPv6Network("fc00::/7"): "is private",
    IPv6Network("ff00::/8"): "is multicast",
    IPv6Network("2001::/23"): "is reserved",
    IPv6Network("2001:db8::/32"): "is for examples",
    IPv6Network("3fff::/20"): "is for examples",
}
PUBLIC_V6 = IPv6Network("2000::/3")
NAT64, SIX_TO_FOUR = IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")
ISATAP = (0x5EFE, 0x02005EFE)  # the upper half of an interface id that ends in an IPv4 address


@dataclass(frozen=True)
class Allowed:
    """What is reached beside public addresses: names as they are written in an address, and networks."""

    names: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def network(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self.networks)


def parse(words: Iterable[str]) -> Allowed:
    """The setting: host names, addresses and networks. Raises SettingError for what is none of them."""
    names, networks = set(), []
    for word in words:
        try:
            networks.append(ip_network(word))
        except ValueError:
            name = plain(word)
            if "/" in name or not name.isascii() or not any(char.isalpha() for char in name) or set(name) & set(" :@*"):
                raise SettingError(f"{SETTING} must list host names, addresses and networks; {word!r} is none of them.") from None
            names.add(name)
    return Allowed(frozenset(names), tuple(networks))


def plain(host: str) -> str:
    """A host as names are compared: lower case, without the dot at its end."""
    return host.lower().rstrip(".")


def inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one carries and leads to, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    if address in SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    if address in NAT64 or number >> 32 & 0xFFFFFFFF in ISATAP:
        return IPv4Address(number & 0xFFFFFFFF)
    return address


def trouble(address: Address) -> str | None:
    """Why an address is not public: the second half of "10.0.0.7 is private". None where it is public."""
    meant = inner(address)
    if isinstance(meant, IPv4Address):
        return next((why for network, why in REFUSED_V4.items() if meant in network), None)
    found = next((why for network, why in REFUSED_V6.items() if meant in network), None)
    return found or (None if meant in PUBLIC_V6 else "is reserved")


def judge(scheme: str, host: str, addresses: Sequence[str], allowed: Allowed) -> str | None:
    """Why nothing is sent there, in a sentence, or None. `addresses` are all that the host stands for at this moment.

    One refused address refuses the host: a name that is public now and then is the very trick this is about.
    """
    if not addresses:
        return f"{host} has no address."
    if plain(host) in allowed.names:
        return None
    found = [ip_address(text) for text in addresses]
    if scheme != "https" and not all(allowed.network(address) for address in found):
        return "Only https is allowed: over http everybody on the way could read and change what is sent."
    for address in found:
        why = trouble(address)
        if why is not None and not allowed.network(address):
            where = str(address) if str(address) == host.strip("[]") else f"{host} stands for {address}, which"
            return f"{where} {why}. Whoever runs Halftide can allow it ({SETTING})."
    return None
