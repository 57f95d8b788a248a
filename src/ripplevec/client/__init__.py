"""Clients of the service: blocking and asyncio."""

from ripplevec.errors import MissingExtraError

try:
    from ripplevec.client.async_client import AsyncClient
    from ripplevec.client.sync_client import Client
except ModuleNotFoundError as error:
    if error.name not in ("httpx", "httpx_sse", "tenacity"):
        raise
    raise MissingExtraError("ripplevec.Client", "client") from error

__all__ = ["AsyncClient", "Client"]
