/** What the page of the notifications makes of the channels. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { failing, list, notificationsPage } from "../static/notifications.js";
import { all, giveDocument, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const later = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();
const digest = (more = {}) => ({
  ...{ id: "7f8f2c0e", at: later(-60), subject: "[new] An order failed: order b03-1 and 2 more" },
  ...{ entries: 3, outcome: "sent", ...more },
});
const channel = (more = {}) => ({
  ...{ channel: "slack", waiting: 0, lastSentAt: later(-60), pausedUntil: null, failure: null },
  ...{ messages: [digest()], ...more },
});
/** The marks of all states and outcomes, in the order of the page. */
const looks = (shown) => all(shown, "span").flatMap(({ props }) => /^badge (\w+)$/.exec(props.class ?? "")?.[1] ?? []);
const bodies = (shown) => all(shown, "tbody").map((body) => all(body, "tr").map((row) => all(row, "td").map(textOf)));

beforeEach(giveStorage);

test("each channel has its section, named by its heading, with its messages in their order", () => {
  const messages = [digest({ id: "2", subject: "second", outcome: "refused" }), digest({ id: "1", subject: "first" })];
  const shown = list([channel({ messages }), channel({ channel: "pager", messages: [] })]);
  const headings = all(shown, "h2");
  assert.deepEqual(headings.map(textOf), [text("console.notifications.channel.slack"), "pager"]);
  assert.deepEqual(
    all(shown, "section").map(({ props }) => props["aria-labelledby"]),
    headings.map(({ props }) => props.id),
  );
  const [rows, ...others] = bodies(shown);
  assert.deepEqual(
    rows.map(([, subject, entries]) => [subject, entries]),
    [
      ["second", "3"],
      ["first", "3"],
    ],
  );
  assert.deepEqual(others, []);
  assert.deepEqual(looks(shown), ["processed", "error", "processed", "processed"]);
});

for (const [what, more, look] of /** @type {const} */ ([
  ["that has sent works", {}, "processed"],
  ["that was never used says so", { lastSentAt: null, messages: [] }, "pending"],
  ["that failed and waits is paused", { failure: "away", pausedUntil: later(60) }, "waited"],
  ["whose pause is over and that still failed is failing", { failure: "away", pausedUntil: later(-1) }, "error"],
  ["that refused its last message fails", { failure: "401", messages: [digest({ outcome: "refused" })] }, "error"],
])) {
  test(`a channel ${what}`, () => {
    assert.equal(looks(list([channel(more)]))[0], look);
  });
}

test("a pause shows when the next attempt comes, once it is over not any more", () => {
  const times = (pausedUntil) => all(list([channel({ pausedUntil })]), "time").map(({ props }) => props.datetime);
  const [soon, over] = [later(60), later(-1)];
  assert.ok(times(soon).includes(soon));
  assert.ok(!times(over).includes(over));
});

test("what waits and why the last attempt failed can be read", () => {
  const shown = textOf(list([channel({ waiting: 1000, failure: "hooks.slack.com answered 429" })]));
  assert.ok(shown.includes(text("console.notifications.waiting", { count: 1000 })));
  assert.match(shown, /hooks\.slack\.com answered 429/);
});

test("an outcome that only another version knows is shown as it is", () => {
  assert.deepEqual(bodies(list([channel({ messages: [digest({ outcome: "bounced" })] })]))[0][0][3], "bounced");
});

test("where no channel is set up, the page says where alerts are", () => {
  const shown = list([]);
  assert.deepEqual(all(shown, "section"), []);
  assert.ok(textOf(shown).includes(text("console.notifications.none")));
});

test("the title counts the channels that fail", async (context) => {
  const channels = [channel({ failure: "away" }), channel(), channel({ channel: "teams", failure: "away" })];
  assert.equal(failing(channels), 2);
  const document = giveDocument();
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.mock.method(globalThis, "fetch", async (path) =>
    path === "/api/operator/channels"
      ? Response.json({ channels })
      : Response.json({ orders: {}, steps: {}, actions: [] }),
  );
  /** @type {any[]} */
  let shown = [];
  const place = { show: (...children) => void (shown = children), say: () => {}, askKey: () => {}, again: () => {} };
  const page = notificationsPage(/** @type {any} */ (place));
  context.after(() => page.stop());
  for (let turns = 0; turns < 1000 && !all(shown, "section").length; turns += 1)
    await new Promise((resolve) => setImmediate(resolve));
  assert.equal(all(shown, "section").length, 3);
  assert.equal(document.title, `(2) ${text("console.notifications.title")}`);
});
