"""`python -m fedpapers` is the command line; the workflow's jobs call it so."""

import atexit
import os
import sys

from fedpapers.cli import main

try:
    main()
except SystemExit as end:
    if end.code or not (sys.stdout and sys.stderr):
        raise
    # Not through the interpreter's own end: to unload PyTorch takes half a second.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
