/** What several tests need: a browser's storage, and what stands in elements that are only wanted. */

/** A storage that lives as long as the test. @returns {Pick<Storage, "getItem" | "setItem" | "removeItem">} */
export function storage() {
  const kept = new Map();
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
  };
}

/** Give the page storages of its own: newer versions of Node have one that keeps nothing, and warns. */
export function giveStorage() {
  for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(globalThis, name, { value: storage(), configurable: true });
}

/** All elements of a tag, in the order of the page. */
export function all(wanted, tag) {
  if (Array.isArray(wanted)) return wanted.flatMap((each) => all(each, tag));
  if (!wanted?.tag) return [];
  return [...(wanted.tag === tag ? [wanted] : []), ...all(wanted.children, tag)];
}

/** The text of what is wanted. */
export function textOf(wanted) {
  if (Array.isArray(wanted)) return wanted.map(textOf).join("");
  if (wanted?.tag) return wanted.props.live?.() ?? textOf(wanted.children);
  return wanted || wanted === 0 ? String(wanted) : "";
}
