"""The moving picture of the README: a story on a stack of two hosts, recorded while the console's page tells it."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from playwright.async_api import Error, Page, Response

ROOT = Path(__file__).parents[2]
DRAWS = ROOT / "operations/console/tests/moving.js"
PICTURE = ROOT / "docs/pictures/live.svg"
SPEED = 1.5
"""So many times as fast as it was."""
STORIES = ("A host dies in the middle",)
LIVE, SIMULATED, HOSTS, WORDS = (
    "/api/operator/live",
    "/simulator",
    "/local/host",
    "/api/operator/vocabulary",
)
LONGEST_SECONDS = 120
END = "All orders are done"


class Recorder:
    """Keeps what the page is told, each look as one moment, with the caption that follows from it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._answers: dict[str, Any] = {}
        self._looks: list[tuple[float, Any]] = []
        self._reading: set[asyncio.Task[None]] = set()
        self.moments: list[dict[str, Any]] = []
        page.on("response", self._keep)

    @property
    def vocabulary(self) -> Any:
        """The words of the app."""
        return self._answers[WORDS]

    def _keep(self, response: Response) -> None:
        path = "/" + response.url.split("/", 3)[-1]
        if response.request.method == "GET" and path in (LIVE, SIMULATED, HOSTS, WORDS):
            task = asyncio.ensure_future(self._read(path, response))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    async def _read(self, path: str, response: Response) -> None:
        """Note an answer; a host that was killed took its answer with it."""
        try:
            content = await response.json() if response.ok else None
        except (Error, ValueError):
            return
        if content is not None:
            self._answers[path] = content
        if content is not None and path == LIVE:
            self._looks.append((time.monotonic(), content))

    async def tell(self, story: str) -> None:
        """Let the page tell a story, and record it to its end."""
        await self._page.get_by_role("button", name=story).click()
        self._looks.clear()
        until, caption = time.monotonic() + LONGEST_SECONDS, ""
        while not caption.startswith(END) and time.monotonic() < until:
            await self._page.wait_for_timeout(200)
            caption = await self._page.locator(".tale [role=status]").inner_text()
            self.moments += [self._moment(*look, caption) for look in self._looks]
            self._looks.clear()

    def _moment(self, seconds: float, live: Any, caption: str) -> dict[str, Any]:
        simulated, hosts = self._answers[SIMULATED], self._answers[HOSTS]["hosts"]
        known = {"services": simulated["services"], "sample": simulated["sample"]}
        return {
            "seconds": seconds,
            "caption": caption,
            "answer": {"live": live, **known, "hosts": hosts},
        }


async def record(page: Page, file: Path) -> None:
    """Record the stories on this page, which has the operators' key, and draw them."""
    await page.goto("about:blank")
    recorder = Recorder(page)
    await page.goto("/console#/live")
    await page.locator(".pattern").wait_for()
    for story in STORIES:
        await recorder.tell(story)
    recorded = {
        "vocabulary": recorder.vocabulary,
        "moments": recorder.moments,
        "speed": SPEED,
    }
    await asyncio.to_thread(file.write_text, json.dumps(recorded))
    await drawn(file)


async def drawn(file: Path) -> None:
    """Draw what is recorded in the file."""
    node = Path(sys.executable).parent / "node"
    process = await asyncio.create_subprocess_exec(node, DRAWS, file, PICTURE)
    if await process.wait():
        raise SystemExit("the moving picture cannot be drawn")
