/** Times, in one zone everywhere: the reader's own, with its offset, or UTC. */

import { LOCALE, text } from "./words.js";

const KEPT = "times-in-utc";
const UNNOTICED = 2_000;

/** By how many milliseconds the app's clock is ahead of this machine's: what the app says is measured by its own. */
let ahead = 0;

/** Learn what time it is for the app. @param {string | null} date what an answer said, in whole seconds */
export function setServerTime(date) {
  const apart = Date.parse(date ?? "") + 500 - Date.now();
  if (!Number.isNaN(apart)) ahead = Math.abs(apart) < UNNOTICED ? 0 : apart;
}

/** What time it is for the app. */
export const now = () => Date.now() + ahead;

export const isUtc = () => localStorage.getItem(KEPT) === "yes";
/** @param {boolean} utc */
export const setUtc = (utc) => localStorage.setItem(KEPT, utc ? "yes" : "no");

/** How to write a time: made once, which takes longer than to write with it. @param {Intl.DateTimeFormatOptions} options */
function format(options) {
  const [own, utc] = [undefined, "UTC"].map(
    (timeZone) => new Intl.DateTimeFormat(LOCALE, { ...options, hourCycle: "h23", timeZone }),
  );
  return (/** @type {string | number | Date} */ time) => (isUtc() ? utc : own).format(new Date(time));
}

const CLOCK = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = /** @type {const} */ ({ day: "numeric", month: "short" });
const DATE = { ...DAY, year: /** @type {const} */ ("numeric") };
const [day, date, second, all] = [DAY, DATE, CLOCK, { ...DATE, ...CLOCK }].map(format);

/** Whether it is a moment at all: what comes from outside may be anything. @param {string | number | Date} time */
const isMoment = (time) => !Number.isNaN(new Date(time).getTime());

/** Whether a text is a moment as it is written in UTC, to the second; no 30 February is. @param {string} time */
export const isWritten = (time) => isMoment(time) && new Date(time).toISOString() === time.replace("Z", ".000Z");

/** Which year it is in the zone in which times are written. @param {string | number | Date} time */
const year = (time) => (isUtc() ? new Date(time).getUTCFullYear() : new Date(time).getFullYear());

/**
 * The time of day, with the day if it is another than today, and its year if that is another than this.
 * What is no moment stays.
 * @param {string | number | Date} time
 */
export function clock(time) {
  if (!isMoment(time)) return String(time);
  if (date(time) === date(now())) return second(time);
  return `${year(time) === year(now()) ? day(time) : date(time)}, ${second(time)}`;
}

/** Everything, with the offset at that time; what is no moment stays. @param {string | number | Date} time */
export const full = (time) => (isMoment(time) ? `${all(time)} ${offset(time)}` : String(time));

/** The offset from UTC at a moment: it changes with the clocks. @param {string | number | Date} time */
export function offset(time = now()) {
  if (isUtc()) return "UTC";
  const minutes = -new Date(time).getTimezoneOffset();
  const two = (/** @type {number} */ number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  return `UTC${minutes < 0 ? "−" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** The name of the zone, for a label of times that are not known yet, and so have no offset. */
export const zone = () => (isUtc() ? "UTC" : new Intl.DateTimeFormat().resolvedOptions().timeZone);

/**
 * What a field for a time sends, which is in the same zone. If it is as it was filled in, it sends that value unchanged:
 * a field has no seconds, and of an hour that comes twice it cannot say which.
 * Raises `RangeError` for a time that the clocks of the zone skip.
 * @param {string} typed @param {string} [filledIn]
 */
export function sentOf(typed, filledIn) {
  if (filledIn && typed === typedOf(filledIn)) return filledIn;
  const sent = new Date(isUtc() ? `${typed}Z` : typed).toISOString();
  if (typedOf(sent) !== typed.slice(0, 16))
    throw new RangeError(text("page.time.skipped", { time: typed.replace("T", " "), zone: zone() }));
  return sent;
}

/** A moment as a field for a time has it, in the same zone; nothing for what is no moment. @param {string | undefined} time */
export function typedOf(time) {
  const moment = new Date(time ?? "");
  if (Number.isNaN(moment.getTime())) return "";
  const shift = isUtc() ? 0 : moment.getTimezoneOffset() * 60_000;
  return new Date(moment.getTime() - shift).toISOString().slice(0, 16);
}

/** A duration in words, to one unit. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return text("page.time.seconds", { count: Math.round(seconds) });
  if (seconds < 3600) return text("page.time.minutes", { count: Math.floor(seconds / 60) });
  if (seconds < 172800) return text("page.time.hours", { count: Math.floor(seconds / 3600) });
  return text("page.time.days", { count: Math.floor(seconds / 86400) });
}

/** What is no moment stays. @param {string} time */
export const ago = (time) =>
  isMoment(time)
    ? text("page.time.ago", { duration: duration(Math.max(0, (now() - Date.parse(time)) / 1000)) })
    : String(time);

/** How long it still takes; what is over says so, and what is no moment stays. @param {string} time */
export function countdown(time) {
  if (!isMoment(time)) return String(time);
  return Date.parse(time) > now() ? text("page.time.in", { time: left(time) }) : text("page.time.now");
}

/** How long it is until then, which takes less than an hour as on a clock. @param {string} time */
export function left(time) {
  const seconds = Math.max(0, Math.ceil((Date.parse(time) - now()) / 1000));
  if (seconds >= 3600) return duration(seconds);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
