"""HTTP endpoints under /v1, and those for operation."""
