/** Elements by functions, and a page that is made to look like them, in place: focus, scroll and what is typed stay. */

/** @typedef {{tag: string, key?: string, props: Record<string, any>, children: Child[]}} Wanted */
/** @typedef {Wanted | string | number | null | undefined | false | Children} Child */
/** @typedef {Child[]} Children a type of its own, since none may name itself */

const SVG = "http://www.w3.org/2000/svg";
const AS_PROPERTY = new Set(["value", "checked", "indeterminate"]);

/** The element of a page that it surely has: its HTML says so. @param {string} selector @returns {HTMLElement} */
export function the(selector) {
  const found = document.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`The page has no ${selector}`);
  return found;
}

/** What each node was last made to look like. @type {WeakMap<Node, Wanted | string>} */
const shown = new WeakMap();

/**
 * Say which element is wanted.
 *
 * Of the props, `key` tells it from its neighbours, `on…` is called for an event, `live` gives a text that changes with
 * time (see `tick`), and `made` gets the new element. All others are attributes; null or false leave one out.
 * @param {string} tag @param {Record<string, any> | null} [props] @param {...Child} children @returns {Wanted}
 */
export function h(tag, props, ...children) {
  return { tag, key: props?.key, props: props ?? {}, children };
}

/** Make the children of a node look like this. @param {Element} parent @param {...Child} children */
export function render(parent, ...children) {
  const wanted = flat(children);
  const old = new Set(parent.childNodes);
  const nodes = wanted.map((child) => {
    const found = match(child, old);
    if (found) old.delete(found);
    return found;
  });
  for (const gone of old) gone.remove();
  let next = parent.firstChild;
  wanted.forEach((child, place) => {
    const node = nodes[place] ?? create(child, parent);
    // It went further down: not all others went up.
    if (next && node === next.nextSibling) parent.append(next);
    else if (node !== next) parent.insertBefore(node, next);
    next = node.nextSibling;
    update(node, child);
  });
}

/** Bring the texts that change with time up to date. @param {ParentNode} [within] */
export function tick(within = document) {
  for (const node of within.querySelectorAll("[data-live]")) setText(node);
}

/** @param {Child[]} children @returns {(Wanted | string)[]} */
function flat(children) {
  return children.flatMap((child) => {
    if (Array.isArray(child)) return flat(child);
    if (typeof child === "object") return child ?? [];
    return child || child === 0 ? String(child) : [];
  });
}

/** Find a node that can be made into what is wanted: of the same key or, without keys, the first of the same kind. */
function match(wanted, nodes) {
  for (const node of nodes) {
    const was = shown.get(node);
    if (was === undefined) continue;
    if (typeof wanted === "string" || typeof was === "string") {
      if (typeof wanted === typeof was) return node;
    } else if (was.tag === wanted.tag && was.key === wanted.key) return node;
  }
  return null;
}

function create(wanted, parent) {
  if (typeof wanted === "string") return document.createTextNode("");
  const isSvg = wanted.tag === "svg" || (parent.namespaceURI === SVG && parent.localName !== "foreignObject");
  const node = isSvg ? document.createElementNS(SVG, wanted.tag) : document.createElement(wanted.tag);
  if (wanted.props.made) queueMicrotask(() => wanted.props.made(node));
  return node;
}

/** @param {Wanted | string | undefined} was @returns {Record<string, any>} */
const propsOf = (was) => (typeof was === "object" ? was.props : {});

function update(node, wanted) {
  const was = shown.get(node);
  shown.set(node, wanted);
  if (typeof wanted === "string") {
    if (was !== wanted) node.data = wanted;
    return;
  }
  const before = propsOf(was);
  for (const name of Object.keys(before)) if (!(name in wanted.props)) set(node, name, null);
  for (const [name, value] of Object.entries(wanted.props)) if (before[name] !== value) set(node, name, value);
  if (wanted.props.live) setText(node);
  else render(node, wanted.children);
}

function set(node, name, value) {
  if (name === "key" || name === "made") return;
  if (name === "live") node.setAttribute("data-live", "");
  else if (name.startsWith("on")) node[name.toLowerCase()] = value;
  else if (AS_PROPERTY.has(name)) node[name] = value ?? "";
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

function setText(node) {
  const text = propsOf(shown.get(node)).live?.() ?? "";
  if (node.textContent !== text) node.textContent = text;
}
