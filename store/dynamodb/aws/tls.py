"""TLS: certificates and host names are verified on all connections of aiobotocore, also behind a proxy.

aiobotocore 2 does not check host names, and behind an HTTP proxy it verifies nothing at all.
"""

import ssl
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore.httpsession import get_cert_path

# Of clients of credential providers, such as STS; botocore would wait a minute for each attempt.
CONNECT_SECONDS, READ_SECONDS = 2, 4


class VerifiedHTTPSession(AIOHTTPSession):
    """The HTTP session of one client of aiobotocore."""

    def __init__(self, **settings: Any) -> None:
        # An empty AWS_CA_BUNDLE would turn verification off; only a client of a plain HTTP endpoint does.
        verify = settings.get("verify")
        super().__init__(**{**settings, "verify": verify if verify is False else verify or True})

    def _get_ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=get_cert_path(self._verify))  # type: ignore[attr-defined]  # unknown to the stubs

    def _setup_proxy_ssl_context(self, proxy_url: str) -> ssl.SSLContext:
        """The TLS context for connections through a proxy, and to a proxy with https."""
        made = super()._setup_proxy_ssl_context(proxy_url)  # type: ignore[misc]  # unknown to the stubs
        return made or self._get_ssl_context()


class VerifiedSession(AioSession):
    """A session whose clients all verify, also those of credential providers, as STS, which have timeouts as well."""

    def create_client(self, *names: Any, **settings: Any) -> Any:
        config: Any = settings.get("config") or AioConfig()
        if getattr(config, "http_session_cls", AIOHTTPSession) is AIOHTTPSession:  # SSO's is one of botocore
            config = AioConfig(connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS).merge(config)
            config.http_session_cls = VerifiedHTTPSession
        settings["config"] = config
        return super().create_client(*names, **settings)
