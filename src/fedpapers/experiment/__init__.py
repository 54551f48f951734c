"""One experiment: its configuration, its runs, their training and their storage."""
