"""What a graph forgets: weights that fade with the time of events, and edges that nobody has mentioned for long."""
