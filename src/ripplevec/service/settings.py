"""Settings of a service and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.service.security import Tokens

LOG_FORMATS, LOG_LEVELS = ("text", "json"), ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on single requests and on all requests together."""

    body_bytes: int = 16 << 20  # per request
    bodies_bytes: int = 256 << 20  # bodies of all writes, until they are written
    read_bodies_bytes: int = 64 << 20  # bodies of all reads, until they are answered
    answers_bytes: int = 256 << 20  # large responses that clients have not received yet
    events: int = 100_000  # per request
    ids: int = 10_000  # per request for vectors
    neighbors: int = 1_000  # per response of `nearest`
    comparisons: int = 20_000_000  # of a request's queries with vectors; writers wait for them
    queue_requests: int = 1_024  # requests in the write queue
    queue_events: int = 1_000_000  # events in the write queue
    queue_seconds: float = 30.0  # expected wait of a batch for the writer
    queue_reads: int = 256  # reads of each kind that wait for a thread
    read_seconds: float = 30.0  # from a read request to its response
    body_seconds: float = 30.0  # from the start of a body to its end
    body_grace: float = 5.0  # seconds after which `body_rate` is enforced
    body_rate: int = 16 << 10  # minimum bytes per second
    write_seconds: float = 60.0  # from queueing a batch to its response
    poll_seconds: float = 60.0  # maximum wait of a long poll
    followers: int = 256  # open change streams and requests that wait for changes
    retained_batches: int = 100_000  # batches in the change feed
    retained_bytes: int = 256 << 20  # memory of the change feed


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one service: state directory, address, model parameters, write policy."""

    state: Path
    host: str = "127.0.0.1"
    port: int = 8080
    source: str | None = None  # address of a source of events to follow
    dead_letters: str | None = None  # address for messages of the source that cannot be decoded or applied
    sink: str | None = None  # address of a vector store to keep up to date
    parameters: Mapping[str, Any] = field(default_factory=dict)
    shards: int | None = None  # number of shards on a Ray cluster; None for this process
    ray_address: str | None = None
    max_delay_ms: float = 0.0  # how long a batch may wait for others to share its flush
    max_batch: int = 10_000  # events in one flush
    tokens: Tokens = field(default_factory=Tokens)
    hosts: frozenset[str] = frozenset()  # additional names accepted in the Host header
    limits: Limits = field(default_factory=Limits)
    access_log: bool = True
    log_format: str | None = None  # one of LOG_FORMATS; None: text on a terminal, otherwise json
    log_level: str = "info"

    def __post_init__(self) -> None:
        if not self.max_delay_ms >= 0:
            raise InvalidValueError.of("max_delay_ms", "a number ≥ 0", self.max_delay_ms)
        if self.ray_address is not None and self.shards is None:
            raise InvalidValueError.of("ray_address", "None unless shards is set", self.ray_address)
        if self.log_format is not None:
            check_choice("log_format", self.log_format, LOG_FORMATS)
        check_choice("log_level", self.log_level, LOG_LEVELS)
        if self.max_batch < 1:
            raise InvalidValueError.of("max_batch", "a whole number ≥ 1", self.max_batch)
        if not is_loopback(self.host) and not self.tokens:
            raise InvalidValueError(
                f"host: {self.host} can be reached from other machines, so tokens are required. Set --token-file, or "
                "RIPPLEVEC_READ_TOKENS and RIPPLEVEC_WRITE_TOKENS"
            )

    @property
    def url(self) -> str:
        """Address to open on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}/" if ":" in host else f"http://{host}:{self.port}/"

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Accepted names in the Host header; None for any name, as requests then need a token."""
        if is_loopback(self.host):
            return self.hosts | {"localhost", "127.0.0.1", "::1", self.host}
        if self.hosts:
            return self.hosts | {self.host}
        return None


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a host name, which may resolve to another address later
        return False
