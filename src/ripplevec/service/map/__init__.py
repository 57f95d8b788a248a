"""The live map page: its endpoints, sampled points, projection and statistics."""
