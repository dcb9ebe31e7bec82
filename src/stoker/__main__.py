"""`python -m stoker` is the same as `stoker`."""

import sys

from stoker.cli.entry import main

sys.exit(main())
