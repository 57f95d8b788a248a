"""Sinks for changes: JSON lines, Parquet, Redis Streams, Kafka and LanceDB."""
