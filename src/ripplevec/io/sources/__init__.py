"""Live event streams (files, standard input, frames, Redis, Kafka) with positions from which reading resumes."""
