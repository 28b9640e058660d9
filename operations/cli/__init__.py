"""The operators' command line, in the language that `OPERATOR_LANGUAGE` names.

The language is chosen before any command is made, because commands get their help text then.
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
