"""The repository's app with the business that `BUSINESS` names."""

import os

from development.business import load_app

app = load_app(os.environ["BUSINESS"])
