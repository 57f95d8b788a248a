"""Destinations for changes and for rejected messages: JSON Lines, Parquet, Redis, Kafka, LanceDB."""
