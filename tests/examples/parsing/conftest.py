"""The modules of the example, imported as its program imports them."""

import sys

from tests.conftest import EXAMPLES

sys.path.insert(0, str(EXAMPLES / "parsing"))
