"""Endpoints and credentials that stores of one engine share in tests: botocore takes 20 ms for each of them.

Only plain HTTP on this machine without files of configuration is shared, since these follow from the environment alone.
"""

import os

from aiobotocore.credentials import AioCredentials

from store.dynamodb.credentials import Endpoint, find_credentials, find_endpoint

_Key = tuple[str | None, str | None, frozenset[tuple[str, str]]]

_endpoints: dict[_Key, Endpoint] = {}
_credentials: dict[_Key, AioCredentials] = {}


async def shared_endpoint(region: str | None, endpoint: str | None) -> Endpoint:
    """What `find_endpoint` returns."""
    key = _key(region, endpoint)
    if key is None:
        return await find_endpoint(region, endpoint)
    if key not in _endpoints:
        _endpoints[key] = await find_endpoint(region, endpoint)
    return _endpoints[key]


async def shared_credentials(region: str, endpoint: str) -> AioCredentials | None:
    """What the search for credentials returns, which is shared if they never expire."""
    key = _key(region, endpoint)
    if key in _credentials:
        return _credentials[key]
    found = await find_credentials(region, endpoint)
    if key is not None and type(found) is AioCredentials:
        _credentials[key] = found
    return found


def _key(region: str | None, endpoint: str | None) -> _Key | None:
    variables = frozenset((name, value) for name, value in os.environ.items() if name.startswith("AWS_"))
    files = {os.environ.get(name) for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")}
    if files != {os.devnull} or not (endpoint or "").startswith("http://127.0.0.1:"):
        return None
    return region, endpoint, variables
