"""What axe, which knows the rules of accessible pages, says against a page."""

from importlib.resources import files

AXE = "axe_playwright_python", "axe.min.js"
"""Package and file."""


async def violations(page):
    """What axe says against a page. It is run beside the page, since the page itself lets nothing foreign in."""
    package, file = AXE
    await page.evaluate(files(package).joinpath(file).read_text())
    found = (await page.evaluate("axe.run()"))["violations"]
    return [
        f"{violation['id']}: {violation['help']}: {[node['html'][:120] for node in violation['nodes']]}"
        for violation in found
    ]
