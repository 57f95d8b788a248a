"""HTTP service over a durable session: one writer, many readers, a change feed and a live map."""
