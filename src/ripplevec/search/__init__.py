"""Who is near: the nearest vertices by cosine."""
