/** Times, in one zone everywhere: the reader's own, with its offset, or UTC. */

const KEPT = "times-in-utc";

export const isUtc = () => localStorage.getItem(KEPT) === "yes";
/** @param {boolean} utc */
export const setUtc = (utc) => localStorage.setItem(KEPT, utc ? "yes" : "no");

/** @param {string | number | Date} time @param {Intl.DateTimeFormatOptions} options */
const format = (time, options) =>
  new Date(time).toLocaleString("en-GB", { ...options, hourCycle: "h23", timeZone: isUtc() ? "UTC" : undefined });

const CLOCK = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = /** @type {const} */ ({ day: "numeric", month: "short" });

/** The time of day, and the day if it is another than today. @param {string | number | Date} time */
export function clock(time) {
  const day = format(time, DAY);
  return day === format(Date.now(), DAY) ? format(time, CLOCK) : `${day}, ${format(time, CLOCK)}`;
}

/** Everything, with the offset. @param {string | number | Date} time */
export const full = (time) => `${format(time, { ...DAY, year: "numeric", ...CLOCK })} ${zone()}`;

/** The offset from UTC. */
export function zone() {
  if (isUtc()) return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  const two = (/** @type {number} */ number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  return `UTC${minutes < 0 ? "−" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

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
