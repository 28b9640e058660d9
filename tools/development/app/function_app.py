"""The app of the business that `BUSINESS` names: the repository's own, with that business in it."""

import os

from development.business import load_app

app = load_app(os.environ["BUSINESS"])
