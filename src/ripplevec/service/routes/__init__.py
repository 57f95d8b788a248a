"""The endpoints, a file per subject."""
