"""What a service is told when it is started, and the bounds it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ripplevec.errors import InvalidValueError
from ripplevec.service.security import Tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request, and all of them together, may take."""

    body_bytes: int = 16 << 20
    bodies_bytes: int = 256 << 20  # received of all requests that write, until they are written
    read_bodies_bytes: int = 64 << 20  # received of all requests that read, until they are answered
    answers_bytes: int = 256 << 20  # of large answers that clients have not taken yet
    events: int = 100_000  # in one request
    ids: int = 10_000  # in one request for vectors
    neighbors: int = 1_000  # in one answer of nearest
    queue_requests: int = 1_024
    queue_events: int = 1_000_000
    queue_seconds: float = 30.0  # that a batch may be expected to wait for the writer
    queue_reads: int = 256  # that wait for a thread, of each kind
    read_seconds: float = 30.0  # from a request that reads to its answer
    body_seconds: float = 30.0
    body_grace: float = 5.0  # seconds from which on a body has to keep its rate
    body_rate: int = 16 << 10  # bytes a second
    write_seconds: float = 60.0
    poll_seconds: float = 60.0  # the longest a long poll may wait
    followers: int = 256
    retained_batches: int = 100_000
    retained_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """One service: where its state lies, where it listens, how it writes."""

    state: Path
    host: str = "127.0.0.1"
    port: int = 8080
    source: str | None = None
    dead_letters: str | None = None
    sink: str | None = None  # a vector store that is kept in step
    parameters: Mapping[str, Any] = field(default_factory=dict)
    shards: int | None = None  # on so many of a Ray cluster; None: in this process
    ray_address: str | None = None
    max_delay_ms: float = 0.0
    max_batch: int = 10_000
    tokens: Tokens = field(default_factory=Tokens)
    hosts: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    access_log: bool = True

    def __post_init__(self) -> None:
        if not self.max_delay_ms >= 0:
            raise InvalidValueError.of("max_delay_ms", "a number ≥ 0", self.max_delay_ms)
        if self.ray_address is not None and self.shards is None:
            raise InvalidValueError.of("ray_address", "nothing without shards", self.ray_address)
        if self.max_batch < 1:
            raise InvalidValueError.of("max_batch", "a whole number ≥ 1", self.max_batch)
        if not is_loopback(self.host) and not self.tokens:
            raise InvalidValueError(
                f"host: {self.host} can be reached from other machines, so that tokens are needed; give --token-file, "
                "or RIPPLEVEC_READ_TOKENS and RIPPLEVEC_WRITE_TOKENS"
            )

    @property
    def names(self) -> frozenset[str] | None:
        """The names a request may call this service by; None where any will do, as it needs a token anyway."""
        if is_loopback(self.host):
            return self.hosts | {"localhost", "127.0.0.1", "::1", self.host}
        if self.hosts:
            return self.hosts | {self.host}
        return None


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name: what it leads to may change
        return False
