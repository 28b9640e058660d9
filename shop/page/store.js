/** What this browser keeps: the basket, and which orders are mine. No name and no address. */

/** @typedef {{sku: string, name: string, cents: number, currency: string, quantity: number}} Line */
/** @typedef {{key: string, lines: Line[]}} Basket `key` says of two sendings that they are one purchase */
/** @typedef {{id: string, at: string, lines: Line[], said?: string}} Mine */

const MOST = 50;

const read = (name, otherwise) => JSON.parse(localStorage.getItem(name) ?? "null") ?? otherwise;
const write = (name, value) => localStorage.setItem(name, JSON.stringify(value));

/** @returns {Basket} */
export const basket = () => read("basket", { key: "", lines: [] });

/** Put so many of a product into the basket; none takes it out. @param {Omit<Line, "quantity">} product @param {number} quantity */
export function put(product, quantity) {
  const { key, lines } = basket();
  const wanted = { ...product, quantity: Math.min(quantity, 1000) };
  const there = lines.some((line) => line.sku === product.sku);
  const next = there ? lines.map((line) => (line.sku === product.sku ? wanted : line)) : [...lines, wanted];
  write("basket", { key: key || newKey(), lines: next.filter((line) => line.quantity > 0) });
}

/** Let what is in the basket be another purchase than what was sent before. */
export const anotherPurchase = () => write("basket", { ...basket(), key: newKey() });

/** Remember an order that was accepted, and empty the basket. @param {string} id */
export function bought(id) {
  write("orders", [{ id, at: new Date().toISOString(), lines: basket().lines }, ...mine()].slice(0, MOST));
  localStorage.removeItem("basket");
}

/** My orders, the newest first. @returns {Mine[]} */
export const mine = () => read("orders", []);

/** Keep what was last said of an order of mine. @param {string} id @param {string} line */
export const keepLine = (id, line) =>
  write(
    "orders",
    mine().map((order) => (order.id === id ? { ...order, said: line } : order)),
  );

/** @param {string} sku */
export const quantityOf = (sku) => basket().lines.find((line) => line.sku === sku)?.quantity ?? 0;
/** @param {Line[]} lines */
export const count = (lines) => lines.reduce((sum, line) => sum + line.quantity, 0);

/** @param {Line[]} lines */
export const things = (lines) => (count(lines) === 1 ? "1 item" : `${count(lines)} items`);

/** What lines cost together, to be read. @param {Line[]} lines */
export const total = (lines) =>
  money(
    lines.reduce((sum, line) => sum + line.cents * line.quantity, 0),
    lines[0]?.currency,
  );

/** @param {number} cents @param {string} [currency] */
export const money = (cents, currency = "EUR") =>
  new Intl.NumberFormat("en-GB", { style: "currency", currency }).format(cents / 100);

/** A UUID; `randomUUID` is not there on a page that came over plain HTTP from another machine. */
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
}
