"""Models on several machines: vertices are distributed over shards, which apply every batch together."""

from ripplevec.cluster.sharded_embedder import Sharded, ShardedEmbedder

__all__ = ["Sharded", "ShardedEmbedder"]
