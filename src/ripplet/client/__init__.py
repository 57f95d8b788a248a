"""A client for the service, for programs that wait and for those that do not."""

from ripplet.errors import MissingExtraError

try:
    from ripplet.client.asynchronous import AsyncClient
    from ripplet.client.synchronous import Client
except ModuleNotFoundError as error:
    if error.name != "httpx":
        raise
    raise MissingExtraError("ripplet.Client", "client") from error

__all__ = ["AsyncClient", "Client"]
