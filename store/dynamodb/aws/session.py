"""AWS client of DynamoDB, made by aioboto3, or by aiobotocore if aioboto3 is not installed. A client of aioboto3 is a
client of aiobotocore, whose version it pins (`docs/decisions/aiobotocore.md`).
"""

from typing import Any

from store.dynamodb.aws.credentials import SessionCredentials
from store.dynamodb.aws.tls import VerifiedSession

aioboto3: Any
try:
    import aioboto3
except ImportError:
    aioboto3 = None


async def open_session(credentials: SessionCredentials) -> VerifiedSession:
    """A session with these credentials, which are searched once; raises what the search raises."""
    session = VerifiedSession()
    session.register_component("credential_provider", credentials)
    await session.get_credentials()
    return session


def make_client(session: VerifiedSession, **settings: Any) -> Any:
    """The context manager of a client of DynamoDB."""
    if aioboto3 is None:
        return session.create_client("dynamodb", **settings)
    return aioboto3.Session(botocore_session=session).client("dynamodb", **settings)
