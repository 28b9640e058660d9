"""The operators' command line, in the language that `OPERATOR_LANGUAGE` names.

The language is chosen before any command is made, since commands have their help from then on.
"""

import os
import sys

from engine.words import catalogue

LANGUAGE = "OPERATOR_LANGUAGE"

try:
    catalogue.use(os.environ.get(LANGUAGE) or catalogue.ENGLISH)
except ValueError as fault:
    print(f"Error: {LANGUAGE}: {fault}", file=sys.stderr)  # noqa: T201 - it talks to a person
    sys.exit(2)
