"""The pages' files, and what is said of them over HTTP."""

import gzip
import json
import re
import subprocess
from itertools import chain
from pathlib import Path

import azure.functions as func
import pytest

from engine.pages.triggers import BusinessPage, Pages, page_functions
from engine.words import catalogue
from operations.console.triggers import STATIC as CONSOLE
from operations.console.triggers import console_functions
from shop.business import PAGE
from testkit.memory import in_memory
from tests.support.apps import app as engine
from tests.support.apps import functions

ROOT = Path(__file__).parents[4]
PAGE_OF_SHOP = BusinessPage(path="shop", title="Shop", folder=PAGE)
SITE = Pages.read([CONSOLE], PAGE_OF_SHOP)
WITHOUT_PAGE = Pages.read([CONSOLE])
JAVASCRIPT = ("engine/pages", "operations/console", "shop")
COMMON = "engine/pages/static/common"
WORDS = "engine/words/en.json"
IMPORTED = re.compile(
    r'^import .*?"([^"]+)"(?: with \{ type: "json" \})?;', re.MULTILINE | re.DOTALL
)


def functions_of(site, **how):
    """The functions by name."""
    app = func.FunctionApp()
    app.register_functions(page_functions(site, **how))
    app.register_functions(console_functions(site))
    return {function.get_function_name(): function for function in app.get_functions()}


async def get(name, path="", headers=None, site=SITE, start=False, **parameters):
    """Call one of the functions as the host does."""
    request = func.HttpRequest(
        method="GET",
        url=f"http://x/{path}",
        headers=headers or {},
        route_params=parameters,
        body=b"",
    )
    return await functions_of(site, start=start)[name].get_user_function()(request)


@pytest.mark.parametrize("name", ["web_page", "web_console"])
async def test_a_page_names_its_files_by_the_hash_and_is_revalidated(name):
    """What it names is there; nothing stands in it that its policy forbids."""
    page = await get(name)
    text = page.get_body().decode()
    named = re.findall(r'(?:src|href)="/web/([^/"]+)/([^"]+)"', text)
    assert {integrity for integrity, _ in named} == {SITE.hash}
    assert {file for _, file in named} <= SITE.files.keys()
    assert page.status_code == 200
    assert page.mimetype == "text/html"
    assert page.headers["Cache-Control"] == "no-cache"
    again = await get(name, headers={"If-None-Match": page.headers["ETag"]})
    assert (again.status_code, again.get_body()) == (304, b"")
    assert not re.search(r"<style|<script>|style=|\son\w+=", text)


@pytest.mark.parametrize("name", ["web_page", "web_console"])
async def test_a_page_names_all_its_modules_so_that_they_come_in_one_wave(name):
    """Each that its script imports, directly or not; none twice, and none that it does not need."""
    text = (await get(name)).get_body().decode()
    links = r'<link rel="modulepreload"(?: as="json")? href="/web/\w+/([^"]+)">'
    named = re.findall(links, text)
    needed, left = set(), re.findall(r'<script type="module" src="/web/\w+/([^"]+)">', text)
    while left:
        module = left.pop()
        needed.add(module)
        body = SITE.files[module].body.decode()
        found = {((ROOT / module).parent / path).resolve() for path in IMPORTED.findall(body)}
        left += {path.relative_to(ROOT).as_posix() for path in found} - needed
    assert sorted(named) == sorted(needed)
    assert WORDS in named


@pytest.mark.parametrize("name", ["web_home", "web_page", "web_console"])
def test_whoever_only_watches_may_ask_for_the_head_of_a_page(name):
    """As probes do from outside."""
    (trigger,) = (
        binding
        for binding in functions_of(SITE)[name].get_bindings()
        if "methods" in binding.get_dict_repr()
    )
    assert {str(method.value) for method in trigger.get_dict_repr()["methods"]} == {"GET", "HEAD"}


async def test_a_file_is_kept_for_ever_under_its_hash():
    """Under another one, which a page of another version names, it is given and not kept."""
    kept = await get("web_file", hash=SITE.hash, file=f"{COMMON}/dom.js")
    assert (kept.status_code, kept.mimetype) == (200, "text/javascript")
    assert "immutable" in kept.headers["Cache-Control"]
    other = await get("web_file", hash="0" * 16, file=f"{COMMON}/dom.js")
    assert (other.status_code, other.headers["Cache-Control"]) == (200, "no-store")


NO_FILES = [
    "",
    COMMON,
    "engine/pages/triggers.py",
    "operations/console/triggers.py",
    "../../function_app.py",
    f"{COMMON}/none.js",
]


@pytest.mark.parametrize("file", NO_FILES)
async def test_nothing_but_the_files_is_given(file):
    """Whatever a path says, it leads nowhere else."""
    assert (await get("web_file", hash=SITE.hash, file=file)).status_code == 404


async def test_who_takes_gzip_gets_it():
    """The same content; caches tell the two apart."""
    plain = await get("web_file", hash=SITE.hash, file=f"{COMMON}/base.css")
    zipped = await get(
        "web_file",
        headers={"Accept-Encoding": "br, gzip"},
        hash=SITE.hash,
        file=f"{COMMON}/base.css",
    )
    assert "Content-Encoding" not in plain.headers
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.get_body()) == plain.get_body()
    assert {answer.headers["Vary"] for answer in (plain, zipped)} == {"Accept-Encoding"}


async def test_a_business_without_a_page_has_the_console_alone():
    """No address of a page, nothing that leads to one, and none of another business's files."""
    assert sorted(functions_of(WITHOUT_PAGE)) == ["web_console", "web_file"]
    assert sorted(functions_of(SITE).keys() - functions_of(WITHOUT_PAGE)) == [
        "web_home",
        "web_page",
    ]
    console = (await get("web_console", site=WITHOUT_PAGE)).get_body().decode()
    assert 'data-page="" data-title=""' in console
    assert [
        name
        for name in WITHOUT_PAGE.files
        if not name.startswith(("engine/pages/static/", f"{CONSOLE}/", WORDS))
    ] == []
    assert 'data-page="/shop" data-title="Shop"' in (await get("web_console")).get_body().decode()


async def test_no_name_of_a_page_becomes_markup(tmp_path):
    """It is text, whatever stands in it."""
    (tmp_path / CONSOLE).mkdir(parents=True)
    (tmp_path / CONSOLE / "index.html").write_text('<footer data-title="{title}">')
    site = Pages.read(
        [CONSOLE],
        BusinessPage(path="tea", title='"><b>Tea & co', folder=tmp_path / "tea"),
        tmp_path,
    )
    console = (await get("web_console", site=site)).get_body().decode()
    assert console == '<footer data-title="&quot;&gt;&lt;b&gt;Tea &amp; co">'


async def test_a_page_shows_its_notice_whichever_part_of_it_is_open():
    """It stands in the document, before the script draws anything; without one it is empty, and not drawn."""
    notice = "Payments go to a <simulated> service."
    site = Pages.read(
        [CONSOLE], BusinessPage(path="shop", title="Shop", folder=PAGE, notice=notice)
    )
    shown = ">Payments go to a &lt;simulated&gt; service.</aside>"
    assert shown in (await get("web_page", site=site)).get_body().decode()
    assert 'aria-label="Notice"></aside>' in (await get("web_page")).get_body().decode()
    assert "#notice:empty { display: none; }" in SITE.files["shop/page/shop.css"].body.decode()
    assert site.hash != SITE.hash


async def test_the_root_leads_customers_to_the_shop():
    """With nothing that is kept, and no link to the console."""
    answer = await get("web_home")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/shop")


@pytest.mark.parametrize(("site", "page"), [(SITE, ["/shop"]), (WITHOUT_PAGE, [])])
async def test_where_services_are_simulated_the_root_links_to_all_there_is(site, page):
    """The page of the business if it has one, the console, and the description (newcomer B, A 9, D)."""
    start = await get("web_home", site=site, start=True)
    assert (start.status_code, start.mimetype) == (200, "text/html")
    text = start.get_body().decode()
    shown = re.sub(r"<li hidden>.*?</li>", "", text)
    linked = re.findall(r'<a href="([^"]*)"', shown)
    assert linked == [*page, "/console", "/console#/live", "/api/openapi.json"]
    files = re.findall(r'(?:src|href)="/web/([^/"]+)/([^"]+)"', text)
    assert {digest for digest, _ in files} == {site.hash}
    assert {file for _, file in files} <= site.files.keys()
    again = await get(
        "web_home", site=site, start=True, headers={"If-None-Match": start.headers["ETag"]}
    )
    assert again.status_code == 304


async def test_only_an_app_with_simulated_services_has_the_start_page():
    """Elsewhere the root is the customers' (newcomer B)."""
    for simulated in (True, False):
        app = functions(engine(in_memory(), simulator_enabled=simulated), page=PAGE_OF_SHOP)
        (home,) = (
            function
            for function in app.get_functions()
            if function.get_function_name() == "web_home"
        )
        request = func.HttpRequest(method="GET", url="http://x/", body=b"")
        answer = await home.get_user_function()(request)
        assert answer.status_code == (200 if simulated else 302)


async def test_a_page_may_load_nothing_but_what_is_ours_and_is_shown_in_no_other():
    """The policy allows no inline script, no style, no other host, and no text as markup."""
    headers = (await get("web_console")).headers
    assert headers["Content-Security-Policy"].split("; ") == [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_another_content_has_another_hash(tmp_path):
    """Of any file: modules import each other under the hash of all."""
    script = tmp_path / "engine/pages/static/a.js"
    script.parent.mkdir(parents=True)
    script.write_text("1")
    before = Pages.read([], app=tmp_path)
    script.write_text("2")
    assert Pages.read([], app=tmp_path).hash != before.hash


@pytest.fixture
def pseudo():
    """The language of the process; later tests are in English again."""
    catalogue.use(catalogue.PSEUDO)
    yield
    catalogue.use(catalogue.ENGLISH)


def words_of(site):
    """The texts that the pages import."""
    return json.loads(site.files[WORDS].body)


def test_the_pages_have_their_words_and_no_others(pseudo):
    """In the language of the process, and under a hash of their own."""
    site = Pages.read([CONSOLE], PAGE_OF_SHOP)
    assert site.hash != SITE.hash
    assert site.files[WORDS].media_type == "application/json"
    assert words_of(site).keys() == words_of(SITE).keys()
    assert {key.split(".")[0] for key in words_of(site)} == {"console", "page"}
    assert words_of(SITE)["console.title"] == "Console"
    assert words_of(site)["console.title"] == catalogue.text("console.title")
    assert words_of(site)["page.locale"] == words_of(SITE)["page.locale"]


@pytest.mark.parametrize("page", ["engine/pages/static/start", CONSOLE])
def test_a_document_is_in_the_language_of_the_process(pseudo, page):
    """Its title too, and the tag of the language is one."""
    text = Pages.read([CONSOLE], PAGE_OF_SHOP).files[f"{page}/index.html"].body.decode()
    assert '<html lang="en-GB">' in text
    assert re.search(r"<title>\[.*\]</title>", text)
    assert "{{" not in text


def test_every_module_that_is_imported_is_there():
    """Relative paths only, so that all come under one hash."""
    for name, file in SITE.files.items():
        text = file.body.decode()
        for imported in IMPORTED.findall(text):
            path = (ROOT / name).parent / imported
            assert path.resolve().relative_to(ROOT).as_posix() in SITE.files, f"{name}: {imported}"


def test_what_is_pure_of_the_pages_does_what_its_own_tests_say():
    """They run in Node, without a browser."""
    files = sorted(
        chain.from_iterable(ROOT.glob(f"{folder}/tests/*.test.js") for folder in JAVASCRIPT)
    )
    command = ["node", "--test", *files]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stdout
