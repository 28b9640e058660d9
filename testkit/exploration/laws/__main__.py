"""Print the table of the laws: `python -m testkit.exploration.laws`."""

from testkit.exploration.laws.registry import table

print(*table(), sep="\n")
