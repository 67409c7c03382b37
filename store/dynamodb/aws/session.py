"""AWS client of DynamoDB, made by aioboto3, or by aiobotocore if aioboto3 is not installed. A client of aioboto3 is a
client of aiobotocore, whose version it pins (`docs/decisions/aiobotocore.md`).
"""

from functools import cache
from typing import Any, cast

from botocore.loaders import Loader
from botocore.session import Session as BotocoreSession

from store.dynamodb.aws.credentials import SessionCredentials
from store.dynamodb.aws.tls import VerifiedSession

aioboto3: Any
try:
    import aioboto3
except ImportError:
    aioboto3 = None


@cache
def _loader() -> Loader:
    """The loader of botocore's descriptions of services, which remembers what it has parsed, for all sessions."""
    return cast(Loader, BotocoreSession().get_component("data_loader"))


async def open_session(credentials: SessionCredentials) -> VerifiedSession:
    """A session with these credentials, which are searched once; raises what the search raises."""
    session = VerifiedSession()
    session.register_component("data_loader", _loader())
    session.register_component("credential_provider", credentials)
    await session.get_credentials()
    return session


def make_client(session: VerifiedSession, endpoint: str | None, **settings: Any) -> Any:
    """The context manager of a client of DynamoDB. A plain HTTP endpoint needs no certificates, which take a while."""
    settings["endpoint_url"] = endpoint
    if endpoint and endpoint.lower().startswith("http://"):
        settings["verify"] = False
    if aioboto3 is None:
        return session.create_client("dynamodb", **settings)
    return aioboto3.Session(botocore_session=session).client("dynamodb", **settings)
