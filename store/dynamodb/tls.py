"""TLS of the AWS library's connections: every certificate is verified, with its name, also behind a proxy.

aiobotocore leaves names unchecked, of DynamoDB as of STS, and verifies nothing at all behind an HTTP proxy.
"""

import ssl
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore.httpsession import get_cert_path


class VerifiedHTTPSession(AIOHTTPSession):
    """The HTTP session of one client of the AWS library."""

    def __init__(self, **settings: Any) -> None:
        # An empty AWS_CA_BUNDLE would turn all verification off.
        super().__init__(**{**settings, "verify": settings.get("verify") or True})

    def _get_ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=get_cert_path(self._verify))  # type: ignore[attr-defined]  # unknown to the stubs

    def _setup_proxy_ssl_context(self, proxy_url: str) -> ssl.SSLContext:
        """The context of what lies behind a proxy, and of the proxy itself where that is spoken to by TLS."""
        made = super()._setup_proxy_ssl_context(proxy_url)  # type: ignore[misc]  # unknown to the stubs
        return made or self._get_ssl_context()


class VerifiedSession(AioSession):
    """A session all of whose clients verify, also those by which the library gets credentials, as of STS."""

    def create_client(self, *names: Any, **settings: Any) -> Any:
        settings["config"] = settings.get("config") or AioConfig()
        if settings["config"].http_session_cls is AIOHTTPSession:
            settings["config"].http_session_cls = VerifiedHTTPSession
        return super().create_client(*names, **settings)
