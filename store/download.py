"""Bounded HTTP download: one GET with a deadline and a maximum size; redirects are not followed."""

import aiohttp


async def download(url: str, *, seconds: float, max_bytes: int) -> bytes:
    """The body of a response with the status 200, received whole within `seconds`.

    Raises OSError for any other status, for a body of more than `max_bytes`, and where there is no response in time.
    """
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=seconds), trust_env=True, auto_decompress=False, raise_for_status=True
    )
    try:
        headers = {"user-agent": "clade", "accept-encoding": "identity"}
        async with session, session.get(url, allow_redirects=False, headers=headers) as response:
            if response.status != 200:
                raise OSError(f"the status is {response.status}, expected 200")
            body = bytearray()
            async for part in response.content.iter_chunked(65_536):
                body += part
                if len(body) > max_bytes:
                    raise OSError(f"the response is larger than {max_bytes:,} bytes")
            return bytes(body)
    except (aiohttp.ClientError, ValueError) as error:
        raise OSError(str(error) or type(error).__name__) from error
