"""`python -m stoker` is the same as `stoker`."""

import sys

from stoker.cli.main import main

sys.exit(main())
