"""A client for the service, for programs that wait and for those that do not."""

from ripplet.client.asynchronous import AsyncClient
from ripplet.client.synchronous import Client

__all__ = ["AsyncClient", "Client"]
