"""`python -m operations`: the operators' command line. A set-up installs it as `operators` too."""

from operations.cli.main import main

if __name__ == "__main__":
    main(prog_name="operators")
