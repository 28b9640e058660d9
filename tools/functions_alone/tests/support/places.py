"""Where what is tested lies."""

from pathlib import Path

PLATFORM = Path(__file__).parents[2]
TOOLS = PLATFORM.parent
"""What has to be on the path of a process for `import functions_alone`."""
