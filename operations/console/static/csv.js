/** What is shown, as a file for a spreadsheet. */

/** Cells that a spreadsheet would take for a formula; that of East Asia also takes the wide characters. */
const FORMULA = /^[=+\-@＝＋－＠\t\r\n]/;

/** A cell: quoted, and with an apostrophe if it would be a formula: what it holds came from elsewhere. */
function cell(/** @type {unknown} */ value) {
  const text = String(value ?? "");
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** @param {string[]} names @param {unknown[][]} rows */
export const csv = (names, rows) => [names, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");

/** The name of a file, which says so if it does not hold all. @param {string} name @param {number} count @param {boolean} isWhole */
export const fileOf = (name, count, isWhole) => (isWhole ? `${name}.csv` : `${name}-first-${count}.csv`);

/** Save it under that name. @param {string} name @param {string} text */
export function save(name, text) {
  const link = document.createElement("a");
  // With its mark, since spreadsheets take a file without one for another alphabet.
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
