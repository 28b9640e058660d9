/** Times, in one zone everywhere: the reader's own, with its offset, or UTC. */

const KEPT = "times-in-utc";

export const isUtc = () => localStorage.getItem(KEPT) === "yes";
/** @param {boolean} utc */
export const setUtc = (utc) => localStorage.setItem(KEPT, utc ? "yes" : "no");

/** How to write a time: made once, which takes longer than to write with it. @param {Intl.DateTimeFormatOptions} options */
function format(options) {
  const [own, utc] = [undefined, "UTC"].map(
    (timeZone) => new Intl.DateTimeFormat("en-GB", { ...options, hourCycle: "h23", timeZone }),
  );
  return (/** @type {string | number | Date} */ time) => (isUtc() ? utc : own).format(new Date(time));
}

const CLOCK = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = /** @type {const} */ ({ day: "numeric", month: "short" });
const [day, second, all] = [DAY, CLOCK, { ...DAY, year: /** @type {const} */ ("numeric"), ...CLOCK }].map(format);

/** The time of day, and the day if it is another than today. @param {string | number | Date} time */
export const clock = (time) => (day(time) === day(Date.now()) ? second(time) : `${day(time)}, ${second(time)}`);

/** Everything, with the offset. @param {string | number | Date} time */
export const full = (time) => `${all(time)} ${zone()}`;

/** The offset from UTC. */
export function zone() {
  if (isUtc()) return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  const two = (/** @type {number} */ number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  return `UTC${minutes < 0 ? "−" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** The moment that was typed into a field for a time, which is in the same zone. @param {string} typed */
export const momentOf = (typed) => new Date(isUtc() ? `${typed}Z` : typed);

/** A duration in words, to one unit. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} days`;
}

/** @param {string} time */
export const ago = (time) => `${duration(Math.max(0, (Date.now() - Date.parse(time)) / 1000))} ago`;

/** How long it still takes; what is over says so. @param {string} time */
export function countdown(time) {
  const left = Math.ceil((Date.parse(time) - Date.now()) / 1000);
  return left > 0
    ? `in ${left < 3600 ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` : duration(left)}`
    : "now";
}
