"""`docs/your-own-workflow.md`, followed to the letter on a copy of the repository."""

import re
import shutil
from dataclasses import asdict
from pathlib import Path

from reading import follow, steps
from stacks import running

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/your-own-workflow.md"
WRITTEN = re.compile(r"`(shop/\w+\.py)`[^\n]*:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COPIED = ("core", "shop", "submission", "scheduler", "agents", "supervisor", "alerts", "operators", "entrypoints")


async def test_the_page_leads_to_a_running_workflow(tmp_path):
    """A copy, the two files as the page shows them, and then its commands."""
    copy = tmp_path / "copy"
    for folder in (*COPIED, "adapters", "simulator"):
        shutil.copytree(ROOT / folder, copy / folder)
    for file in ("function_app.py", "host.json"):
        shutil.copy(ROOT / file, copy)
    written = WRITTEN.findall(PAGE.read_text())
    assert [path for path, _ in written] == ["shop/sample.py", "shop/business.py"]
    for path, text in written:
        (copy / path).write_text(text)
    async with running(tmp_path / "stack", app=copy) as (stack, _):
        ports = {name.upper(): str(port) for name, port in asdict(stack.ports).items()}
        await follow(PAGE, stack.ports.http_port, cwd=ROOT, env=ports)


def test_the_page_has_steps():
    """The test above cannot pass by finding nothing to do."""
    assert len(list(steps(PAGE))) > 6
