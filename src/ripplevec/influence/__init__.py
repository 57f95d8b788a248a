"""Who an arrival touches: the weighted independent cascade."""
