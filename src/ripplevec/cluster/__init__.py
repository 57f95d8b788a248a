"""The same engine on several machines: vertices fall to shards, and every batch is a sequence of common steps."""

from ripplevec.cluster.sharded_embedder import Sharded, ShardedEmbedder

__all__ = ["Sharded", "ShardedEmbedder"]
