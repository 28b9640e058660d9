"""The embedded host of the benchmark. It and its workers are watched from before the worker is forked."""

import os
from pathlib import Path

from bench.calls import SWITCH, Calls
from bench.spies import install
from functions_alone.host.__main__ import main

if __name__ == "__main__":
    folder = Path(os.environ["BENCH_FOLDER"])
    install(folder)
    if os.environ.get(SWITCH):
        Calls(folder).install()
    main()
