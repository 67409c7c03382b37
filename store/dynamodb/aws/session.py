"""AWS client of DynamoDB by aioboto3: one of aiobotocore, whose version it pins (`docs/decisions/aioboto3.md`)."""

from functools import cache
from typing import Any, cast

import aioboto3
from botocore.loaders import Loader
from botocore.session import Session as BotocoreSession

from store.dynamodb.aws.credentials import SessionCredentials
from store.dynamodb.aws.tls import VerifiedSession


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
    return aioboto3.Session(botocore_session=session).client("dynamodb", **settings)
