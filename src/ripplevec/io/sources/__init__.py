"""Live sources: files, folders, frames, standard input, Redis Streams and Kafka."""
