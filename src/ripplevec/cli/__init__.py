"""The command line: thin, one file per command; what a command does is imported when it runs."""
