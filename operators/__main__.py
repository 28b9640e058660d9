"""`python -m operators`: the operators' command line."""

from operators.cli.commands import main

if __name__ == "__main__":
    main(prog_name="operators")
