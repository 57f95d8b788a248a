"""What is connected: names of vertices, and a growing weighted adjacency."""
