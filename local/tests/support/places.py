"""Where what is tested lies."""

from pathlib import Path

LOCAL = Path(__file__).parents[2]
ROOT = LOCAL.parent
"""What has to be on the path of a process for `import local`."""
