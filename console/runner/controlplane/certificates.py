"""The keys of one control plane: an authority, the API server's certificate, and the pair that signs service accounts' tokens."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = timedelta(days=365)

# A machine whose clock is a little behind takes the certificate too.
LEEWAY = timedelta(hours=1)

# The address that the service `kubernetes` has inside the cluster, the first of its range.
SERVICE = "10.0.0.1"
NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def make(home: Path) -> None:
    """Write `ca.crt`, `tls.crt`, `tls.key`, `accounts.key` and `accounts.pub` into `home`. The authority's key is not kept."""
    authority, server, accounts = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    name = _name("halftide control plane")
    extensions: list[tuple[x509.ExtensionType, bool]] = [(x509.BasicConstraints(ca=True, path_length=0), True)]
    root = _sign(name, authority, name, authority, extensions)
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", SERVICE)]
    names = x509.SubjectAlternativeName([*addresses, *(x509.DNSName(known) for known in NAMES)])
    leaf = _sign(_name("kube-apiserver"), server, name, authority, [(names, False)])
    public = accounts.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write(home / "ca.crt", root.public_bytes(serialization.Encoding.PEM))
    _write(home / "tls.crt", leaf.public_bytes(serialization.Encoding.PEM))
    _write(home / "tls.key", _pem(server))
    _write(home / "accounts.key", _pem(accounts))
    _write(home / "accounts.pub", public)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _sign(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LEEWAY)
        .not_valid_after(now + LIFETIME)
        # Python's own TLS, from 3.13 on, wants both identifiers.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(signer, hashes.SHA256())


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _write(file: Path, data: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(data)
