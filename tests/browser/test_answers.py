"""An operator answers for somebody outside, in a real browser."""

import json

import pytest
from playwright.async_api import expect

from engine.words.catalogue import text
from tests.support.inspection import states_of
from tests.support.submitting import submit_new

TITLE = text("console.answers.title")


@pytest.fixture
async def waiting(client, stack):
    """An order that waits for an answer of its customer."""
    [order_id] = await submit_new(stack, 1, workflow="asked")
    await client.until(order_id, "Processing")
    return order_id


async def open_dialog(page, name):
    await page.get_by_role("button", name=f"{name} choice").click()
    return page.get_by_role("dialog")


@pytest.mark.soak
@pytest.mark.proves("OPR-5", "ANS-3", "ANS-7")
async def test_an_operator_answers_for_a_customer(client, console, waiting):
    """Reads what is asked, is told each fault, loses nothing that was typed; then the order goes on to its end."""
    page = await console(f"/orders/{waiting}")
    awaited = page.get_by_role("region", name=TITLE)
    await expect(awaited).to_contain_text("the colour of the bags")
    await expect(awaited).to_contain_text("1 of 3")

    dialog = await open_dialog(page, "Answer")
    await expect(dialog.locator("pre")).to_contain_text("Which bags, hidden?")
    await expect(dialog).not_to_contain_text("Ada")
    field = dialog.get_by_label(text("console.answers.content"))
    assert json.loads(await field.input_value()) == {"colour": "", "bags": "", "grams": ""}
    wrong = '{"colour": 7, "bags": "many"}'
    for typed, faults in (
        ('{"colour": ', [text("console.answers.no-json")]),
        (wrong, ["answer.colour", "answer.bags"]),
    ):
        await field.fill(typed)
        await dialog.get_by_role("button", name=text("action.answer.button")).click()
        for fault in faults:
            await expect(dialog.get_by_role("alert")).to_contain_text(fault)
        assert await field.input_value() == typed

    await dialog.get_by_role("button", name="Cancel").click()
    dialog = await open_dialog(page, "Answer")
    field = dialog.get_by_label(text("console.answers.content"))
    assert await field.input_value() == wrong
    await field.fill('{"colour": "green", "bags": 2}')
    await dialog.get_by_role("button", name=text("action.answer.button")).click()
    await expect(page.locator(".head .badge")).to_have_text("Processed")
    await expect(awaited).to_have_count(0)
    order = await client.order(waiting)
    assert order["steps"][0]["result"] == {"colour": "green", "bags": 2, "grams": None}


@pytest.mark.soak
@pytest.mark.proves("ANS-3", "OPR-5")
async def test_numbers_are_sent_stored_and_shown_as_they_were_typed(client, console, waiting):
    """`bugs 2`, `P7`: JavaScript has other numbers than these, and the wrong ones were recorded."""
    page = await console(f"/orders/{waiting}")
    sent = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    dialog = await open_dialog(page, "Answer")
    field = dialog.get_by_label(text("console.answers.content"))
    numbers = '"bags": 9007199254740993, "grams": 12345678901234567.89'
    for colour, written in (("7", numbers.replace("9007199254740993", "1e2")), ('"red"', numbers)):
        await field.fill(f'{{"colour": {colour}, {written}}}')
        await dialog.get_by_role("button", name=text("action.answer.button")).click()
        if colour == "7":
            await expect(dialog.get_by_role("alert")).to_contain_text("answer.colour")
    await expect(page.locator(".head .badge")).to_have_text("Processed")
    bodies = [body for body in sent if '"answer":' in body]
    assert ['"bags":1e2,' in body for body in bodies] == [True, False]
    row = str((await states_of(client, [waiting]))[waiting])
    for number in ("9007199254740993", "12345678901234567.89"):
        assert number in bodies[-1]
        assert number in row
        await expect(page.locator("tbody", has_text=number)).not_to_have_count(0)
    assert await client.actions(waiting) == ["reserve"]


@pytest.mark.soak
@pytest.mark.proves("ANS-7", "ANS-6")
async def test_an_operator_waits_longer_reminds_and_gives_a_new_link(client, console, waiting):
    """Each with who and why; a link that was lost is replaced by one that is shown once."""
    page = await console(f"/orders/{waiting}")
    dialog = await open_dialog(page, text("action.extend.title"))
    before = (await client.order(waiting))["completeBy"]
    typed = await dialog.get_by_label("Until").input_value()
    later = f"{int(typed[:4]) + 1}{typed[4:]}"
    await dialog.get_by_label("Until").fill(later)
    await dialog.get_by_role("textbox", name="Why").fill("they are away")
    await dialog.get_by_role("button", name=text("action.extend.button")).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("within 30 days")
    assert await dialog.get_by_label("Until").input_value() == later
    await dialog.get_by_label("Until").fill(typed)
    await dialog.get_by_role("button", name=text("action.extend.button")).click()
    await expect(page.locator("tr", has_text="wait extended")).to_contain_text("they are away")
    after = (await client.order(waiting))["completeBy"]
    assert after == before, "a time that nobody changed goes back as it was"

    dialog = await open_dialog(page, "Remind")
    await dialog.get_by_role("textbox", name="Why").fill("they asked for it")
    await dialog.get_by_role("button", name=text("action.remind.button")).click()
    await expect(page.locator("tr", has_text="they asked for it")).to_contain_text("operator/Grace")

    dialog = await open_dialog(page, "New link")
    await dialog.get_by_role("textbox", name="Why").fill("the mail is lost")
    await dialog.get_by_role("button", name=text("action.link.button")).click()
    link = await dialog.locator("code").inner_text()
    await dialog.get_by_role("button", name="Close").click()
    path = link.partition("/api/")[2]
    status, shown = await client.request("GET", f"/api/{path}", key=False)
    assert (status, shown["question"]) == (200, {"text": "Which bags, Ada?"})

    dialog = await open_dialog(page, "Refuse")
    await dialog.get_by_label(text("console.answers.refusal")).fill("they want none")
    await dialog.get_by_role("button", name=text("action.refuse.button")).click()
    await expect(page.locator(".head .badge")).to_have_text("Error")
    assert (await client.order(waiting))["reason"] == "they want none"
