/** A binary min-heap, ordered by the number that `key(item)` gives. Items die where they are, as `isAlive(item)` tells. */
export class Heap {
  #items = [];
  #key;
  #isAlive;

  constructor(key, isAlive) {
    this.#key = key;
    this.#isAlive = isAlive;
  }

  get size() {
    return this.#items.length;
  }

  peek() {
    return this.#items[0];
  }

  push(item) {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#key(items[parent]) <= this.#key(item)) break;
      items[at] = items[parent];
      at = parent;
    }
    items[at] = item;
  }

  pop() {
    const top = this.#items[0];
    const last = this.#items.pop();
    if (this.#items.length > 0) this.#sink(last);
    return top;
  }

  /** Items are deleted lazily, when they come up; this drops the dead ones before they outnumber the living. */
  tidy(livingCount) {
    if (this.#items.length <= 2 * livingCount + 1024) return;
    const living = this.#items.filter(this.#isAlive);
    this.#items = [];
    for (const item of living) this.push(item);
  }

  #sink(item) {
    const items = this.#items;
    const key = this.#key(item);
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.#key(items[child + 1]) < this.#key(items[child])) child += 1;
      if (this.#key(items[child]) >= key) break;
      items[at] = items[child];
      at = child;
    }
    items[at] = item;
  }
}
