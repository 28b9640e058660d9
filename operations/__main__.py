"""`python -m operations`: the operators' command line.

The packages also install it as `operators`.
"""

from operations.cli.main import main

if __name__ == "__main__":
    main(prog_name="operators")
