"""Edge files (CSV, JSON Lines, Parquet) read into batches."""
