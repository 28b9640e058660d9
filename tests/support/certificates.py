"""Certificates for servers and clients that trust only these."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM


@dataclass(frozen=True, kw_only=True)
class Certified:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def public(self) -> str:
        """The certificate alone, as PEM text."""
        return self.certificate.public_bytes(PEM).decode()

    def pem(self, password: str | None = None) -> str:
        """Certificate and key, as PEM text."""
        encryption = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        key = self.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption)
        return self.public + key.decode()


def authority() -> Certified:
    """Return one that signs others."""
    return _made("an authority", None)


def signed_by(issuer: Certified, name: str) -> Certified:
    """Return one for a server on this machine, or for a client."""
    return _made(name, issuer)


def _made(name: str, issuer: Certified | None) -> Certified:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signer = issuer.key if issuer else key
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    use = x509.KeyUsage(
        digital_signature=issuer is not None,
        key_cert_sign=issuer is None,  # Python 3.13 trusts nobody who does not say so
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(use, critical=True)
        .add_extension(here, critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(known, critical=False)
        .sign(signer, hashes.SHA256())
    )
    return Certified(certificate=certificate, key=key)
