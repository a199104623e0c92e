/** Finds what has a host that covers or meets another without comparing each with each: rules and bindings list thousands. */
import { isOddHost } from './globs.ts';

/** Answers are in the order the items were given, each item once. */
export interface HostIndex<Item> {
  /** Items that cover every one of `hosts`, be it with different hosts of theirs (`hostCovers`). */
  covering(hosts: readonly string[]): readonly Item[];
  /** Items that have a host which meets one of `hosts` (`hostsIntersect`). */
  meeting(hosts: readonly string[]): readonly Item[];
}

/** Indexes `items` by the hosts of each: exact names, `*.x`, `**`. Building and asking cost one step a label, not one an item. */
export function hostIndex<Item>(items: readonly Item[], hostsOf: (item: Item) => readonly string[]): HostIndex<Item> {
  const places = new Places<Item>();
  for (const [position, item] of items.entries()) {
    const entry = { position, item };
    for (const host of hostsOf(item)) places.add(host, entry);
  }
  return {
    covering(hosts) {
      const [first, ...others] = hosts;
      if (first === undefined) return items;
      let kept = places.covering(first);
      for (const host of others) {
        if (kept.size === 0) break;
        const here = places.covering(host);
        kept = new Set([...kept].filter((entry) => here.has(entry)));
      }
      return inOrder(kept);
    },
    meeting(hosts) {
      const found = new Set<Entry<Item>>();
      for (const host of hosts) places.addMeeting(host, found);
      return inOrder(found);
    },
  };
}

interface Entry<Item> {
  readonly position: number;
  readonly item: Item;
}

class Places<Item> {
  readonly #exact = new Map<string, Entry<Item>[]>();
  /** By what follows the `*` of `*.x`. */
  readonly #below = new Map<string, Entry<Item>[]>();
  /** By every ending of a host that a `*.x` could have. */
  readonly #endings = new Map<string, Entry<Item>[]>();
  readonly #everywhere: Entry<Item>[] = [];
  /** A `*` in the middle is taken to meet everything. */
  readonly #odd: Entry<Item>[] = [];
  readonly #all: Entry<Item>[] = [];

  add(host: string, entry: Entry<Item>): void {
    addOnce(this.#all, entry);
    addOnce(listAt(this.#exact, host), entry);
    if (host === '**' || host === '*') addOnce(this.#everywhere, entry);
    if (isOddHost(host)) addOnce(this.#odd, entry);
    if (host.startsWith('*.')) addOnce(listAt(this.#below, host.slice(1)), entry);
    for (const ending of endingsOf(host)) addOnce(listAt(this.#endings, ending), entry);
  }

  covering(host: string): ReadonlySet<Entry<Item>> {
    const found = new Set<Entry<Item>>();
    this.#addCovering(host, found);
    return found;
  }

  addMeeting(host: string, found: Set<Entry<Item>>): void {
    if (isOddHost(host)) {
      addAll(found, this.#all);
      return;
    }
    this.#addCovering(host, found);
    addAll(found, this.#odd);
    if (host.startsWith('*.')) addAll(found, this.#endings.get(host.slice(1)));
  }

  #addCovering(host: string, found: Set<Entry<Item>>): void {
    addAll(found, this.#everywhere);
    addAll(found, this.#exact.get(host));
    if (this.#below.size === 0) return;
    for (const ending of endingsOf(host)) addAll(found, this.#below.get(ending));
  }
}

/** `.b.c` and `.c` of `a.b.c`. */
function* endingsOf(host: string): Iterable<string> {
  for (let dot = host.indexOf('.', 1); dot !== -1; dot = host.indexOf('.', dot + 1)) yield host.slice(dot);
}

function listAt<Value>(map: Map<string, Value[]>, key: string): Value[] {
  const list = map.get(key) ?? [];
  if (list.length === 0) map.set(key, list);
  return list;
}

/** Items are added one after the other, so a repeat is the last of the list. */
function addOnce<Value>(list: Value[], value: Value): void {
  if (list[list.length - 1] !== value) list.push(value);
}

function addAll<Value>(found: Set<Value>, values: readonly Value[] | undefined): void {
  for (const value of values ?? []) found.add(value);
}

function inOrder<Item>(found: ReadonlySet<Entry<Item>>): readonly Item[] {
  return [...found].sort((one, other) => one.position - other.position).map(({ item }) => item);
}
