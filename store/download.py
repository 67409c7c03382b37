"""Bounded HTTP download: one GET with a deadline and a maximum size; redirects are not followed."""

import aiohttp


async def download(url: str, *, seconds: float, max_bytes: int) -> bytes:
    """The body of an answer with the status 200, all of it received within `seconds`. Raises OSError."""
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=seconds), trust_env=True, auto_decompress=False, raise_for_status=True
    )
    try:
        headers = {"user-agent": "clade", "accept-encoding": "identity"}
        async with session, session.get(url, allow_redirects=False, headers=headers) as answer:
            if answer.status != 200:
                raise OSError(f"the status is {answer.status}, expected 200")
            body = bytearray()
            async for part in answer.content.iter_chunked(65_536):
                body += part
                if len(body) > max_bytes:
                    raise OSError(f"the answer is larger than {max_bytes:,} bytes")
            return bytes(body)
    except (aiohttp.ClientError, ValueError) as error:
        raise OSError(str(error) or type(error).__name__) from error
