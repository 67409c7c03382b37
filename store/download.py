"""Bounded HTTP download: one GET with a deadline and a maximum size; redirects are not followed."""

import aiohttp

from store.errors import shown_address

PART_BYTES = 65_536
HEADERS = {"user-agent": "clade", "accept-encoding": "identity"}


async def download(url: str, *, seconds: float, max_bytes: int) -> bytes:
    """The body of a response with the status 200, received whole within `seconds`.

    Raises OSError for any other status, for a body of more than `max_bytes`, and where there is no response in time.
    """
    body, timeout = bytearray(), aiohttp.ClientTimeout(total=seconds)
    session = aiohttp.ClientSession(timeout=timeout, trust_env=True, auto_decompress=False, raise_for_status=True)
    try:
        async with session, session.get(url, allow_redirects=False, headers=HEADERS) as response:
            if response.status != 200:
                location = response.headers.get("location")
                hint = f"; its location is {shown_address(location)}" if location else ""
                raise OSError(f"the status is {response.status}, expected 200{hint}")
            async for part in response.content.iter_chunked(PART_BYTES):
                body += part
                if len(body) > max_bytes:
                    raise OSError(f"the response is larger than {max_bytes:,} bytes")
    except aiohttp.ClientResponseError as error:
        raise OSError(f"the status is {error.status}, expected 200") from error  # without the address and its secrets
    except (aiohttp.InvalidURL, ValueError) as error:
        raise OSError("the address is invalid") from error  # as above
    except aiohttp.ClientError as error:
        raise OSError(str(error) or type(error).__name__) from error
    return bytes(body)
