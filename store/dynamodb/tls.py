"""TLS: certificates and host names are verified on all connections of aiobotocore, also behind a proxy.

aiobotocore checks no host names, of DynamoDB and of STS, and verifies nothing at all behind an HTTP proxy.
"""

import ssl
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore.httpsession import get_cert_path


class VerifiedHTTPSession(AIOHTTPSession):
    """The HTTP session of one client of aiobotocore."""

    def __init__(self, **settings: Any) -> None:
        # An empty AWS_CA_BUNDLE would turn verification off.
        super().__init__(**{**settings, "verify": settings.get("verify") or True})

    def _get_ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=get_cert_path(self._verify))  # type: ignore[attr-defined]  # unknown to the stubs

    def _setup_proxy_ssl_context(self, proxy_url: str) -> ssl.SSLContext:
        """The TLS context for connections through a proxy, and to a proxy with https."""
        made = super()._setup_proxy_ssl_context(proxy_url)  # type: ignore[misc]  # unknown to the stubs
        return made or self._get_ssl_context()


class VerifiedSession(AioSession):
    """A session whose clients all verify, also those of credential providers, as STS."""

    def create_client(self, *names: Any, **settings: Any) -> Any:
        settings["config"] = settings.get("config") or AioConfig()
        if settings["config"].http_session_cls is AIOHTTPSession:
            settings["config"].http_session_cls = VerifiedHTTPSession
        return super().create_client(*names, **settings)
