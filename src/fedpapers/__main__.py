"""`python -m fedpapers` is the command line."""

from fedpapers.cli import main

main()
