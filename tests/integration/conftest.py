"""Brokers of the integration tests."""

from __future__ import annotations

from brokers import kafka_servers, redis_client, redis_server, send, topic

__all__ = ["kafka_servers", "redis_client", "redis_server", "send", "topic"]
