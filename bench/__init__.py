"""Makes the tests' helpers importable for `python -m bench.NAME`, run from the top of a checkout."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))
