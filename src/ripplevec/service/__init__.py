"""The session over HTTP: one writer, many readers, and whoever follows what changes."""
