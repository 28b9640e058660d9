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
  if (Array.isArray(wanted)) return wanted.flatMap((part) => all(part, tag));
  if (!wanted?.tag) return [];
  return [...(wanted.tag === tag ? [wanted] : []), ...all(wanted.children, tag)];
}

/** The text of what is wanted. */
export function textOf(wanted) {
  if (Array.isArray(wanted)) return wanted.map(textOf).join("");
  if (wanted?.tag) return wanted.props.live?.() ?? textOf(wanted.children);
  return wanted || wanted === 0 ? String(wanted) : "";
}

/** An element with as much of it as `render` and a dialog need. */
class Element {
  /** @type {Element[]} */
  childNodes = [];
  /** @type {Element | null} */
  parent = null;
  attributes = {};

  constructor(tag, text = "") {
    [this.tag, this.data] = [tag, text];
  }
  get firstChild() {
    return this.childNodes[0] ?? null;
  }
  get nextSibling() {
    const near = this.parent?.childNodes ?? [];
    return near[near.indexOf(this) + 1] ?? null;
  }
  get textContent() {
    return this.data + this.childNodes.map((child) => child.textContent).join("");
  }
  append(node) {
    this.insertBefore(node, null);
  }
  insertBefore(node, next) {
    node.remove();
    this.childNodes.splice(next ? this.childNodes.indexOf(next) : this.childNodes.length, 0, node);
    node.parent = this;
  }
  remove() {
    if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((child) => child !== this);
    this.parent = null;
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  /** All elements of a tag within. @returns {any[]} */
  all(tag) {
    return this.childNodes.flatMap((child) => [...(child.tag === tag ? [child] : []), ...child.all(tag)]);
  }
  focus() {}
  showModal() {}
  close() {
    /** @type {any} */ (this).onclose();
  }
}

/** Give the page a document of its own, in which a dialog can be opened. */
export function giveDocument() {
  const body = new Element("body");
  const value = {
    ...{ body, title: "", hidden: false, addEventListener: () => {}, removeEventListener: () => {} },
    createElement: (tag) => new Element(tag),
    createTextNode: (text) => new Element("", text),
    querySelector: (tag) => body.all(tag)[0] ?? null,
  };
  Object.defineProperty(globalThis, "document", { value, configurable: true });
  return value;
}
