// The nodes of a tree that a person has come by. Children are loaded by pages of 200, those on the screen alone; pages
// that were not seen for long are dropped, so a tree of any size costs what is on the screen.
import {signal} from '@preact/signals';
import {getTreeNode, listAncestors, listChildren, type TreeNode} from '@idplatform/sdk';
import {asProblem, call, type ApiError} from '../../lib/api';

export const pageSize = 200;
const keptPages = 40;

export interface Branch {
  id: string; // the parent
  count: number;
  pages: Map<number, TreeNode[]>;
  tokens: Map<number, string>; // of the pages that can be asked for by token, which is cheap at any place
  at: Map<string, number>; // where children are: those of the pages, and those that were opened
  busy: Set<number>;
  stale: Set<number>; // loaded before the last change
  error: ApiError | undefined;
}

export class Forest {
  readonly version = signal(0); // grows whenever something was loaded
  readonly nodes = new Map<string, TreeNode>();
  readonly branches = new Map<string, Branch>();
  readonly failed = signal<ApiError | undefined>(undefined);
  private seen: string[] = []; // pages, those seen last at the end

  constructor(readonly root: string) {}

  /** branch returns the children of a node, of which nothing may be loaded yet. */
  branch(id: string): Branch {
    let b = this.branches.get(id);
    if (!b) {
      b = {
        id,
        count: this.nodes.get(id)?.child_count ?? 0,
        pages: new Map(),
        tokens: new Map(),
        at: new Map(),
        busy: new Set(),
        stale: new Set(),
        error: undefined,
      };
      this.branches.set(id, b);
    }
    return b;
  }

  /** load gets a node with those above it. */
  async load(id: string): Promise<TreeNode | undefined> {
    try {
      const [node, above] = await Promise.all([call(getTreeNode({path: {id}})), call(listAncestors({path: {id}}))]);
      for (const n of [node, ...(above ?? [])]) this.nodes.set(n.id, n);
      this.failed.value = undefined;
      this.version.value++;
      return node;
    } catch (e) {
      this.failed.value = asProblem(e);
      return undefined;
    }
  }

  /** want loads a page of children unless it is there. */
  want(id: string, page: number): void {
    const b = this.branch(id);
    this.saw(`${id}/${page}`);
    if (b.busy.has(page) || b.error || (b.pages.has(page) && !b.stale.has(page))) return;
    b.busy.add(page);
    void this.fetch(b, page);
  }

  private async fetch(b: Branch, page: number): Promise<void> {
    const token = b.stale.has(page) ? undefined : b.tokens.get(page);
    try {
      const list = await call(
        listChildren({
          path: {id: b.id},
          query: {
            page_size: pageSize,
            ...(token ? {page_token: token} : {page_num: page + 1}),
            count: page === 0 ? undefined : 'false',
          },
        }),
      );
      const items = list.items ?? [];
      b.pages.set(page, items);
      b.stale.delete(page);
      items.forEach((n, i) => {
        this.nodes.set(n.id, n);
        b.at.set(n.id, page * pageSize + i);
      });
      if (list.next_page_token) b.tokens.set(page + 1, list.next_page_token);
      else b.count = page * pageSize + items.length; // the last page tells the number exactly
      if (page === 0 && list.next_page_token)
        b.count = Math.max(list.total ?? 0, this.nodes.get(b.id)?.child_count ?? 0);
    } catch (e) {
      b.error = asProblem(e);
    } finally {
      b.busy.delete(page);
      this.version.value++;
    }
  }

  /** retry asks again for children that could not be loaded. */
  retry(id: string): void {
    this.branch(id).error = undefined;
    this.version.value++;
  }

  /** refresh loads anew what is on the screen; what is there stays until then. */
  refresh(): void {
    for (const b of this.branches.values()) {
      b.error = undefined;
      b.tokens.clear();
      b.at.clear();
      for (const [page, items] of b.pages) {
        b.stale.add(page);
        items.forEach((n, i) => b.at.set(n.id, page * pageSize + i));
      }
    }
    void this.load(this.root);
  }

  child(b: Branch, index: number): TreeNode | undefined {
    return b.pages.get(Math.floor(index / pageSize))?.[index % pageSize];
  }

  private saw(key: string): void {
    if (this.seen[this.seen.length - 1] === key) return;
    this.seen = this.seen.filter((k) => k !== key);
    this.seen.push(key);
    while (this.seen.length > keptPages) {
      const [id, page] = this.seen.shift()!.split('/');
      const b = this.branches.get(id!);
      for (const n of b?.pages.get(Number(page)) ?? [])
        if (!this.branches.has(n.id)) {
          this.nodes.delete(n.id);
          b!.at.delete(n.id);
        }
      b?.pages.delete(Number(page));
    }
  }
}

/** Opened says which nodes are open: those that show all children, and those that show the way to one node alone. */
export interface Opened {
  all: ReadonlySet<string>;
  way: string; // the node at the end of the way
}

export type Row =
  | {
      kind: 'node';
      node: TreeNode | undefined;
      index: number;
      level: number;
      pos: number;
      size: number;
      open: boolean;
      branch?: Branch;
    }
  | {kind: 'others'; node: TreeNode; count: number; level: number}
  | {kind: 'failed'; branch: Branch; level: number}
  | {kind: 'loading'; level: number};

interface Run {
  start: number;
  length: number;
  row: (i: number) => Row;
  find: (id: string) => number; // the index of a node in the run, or -1
}

/** Layout tells which row is where, without making rows: a run is as cheap with a million children as with one. */
export class Layout {
  readonly runs: Run[] = [];
  length = 0;
  private readonly next = new Map<string, string>(); // on the way: the child of a node

  constructor(
    private readonly forest: Forest,
    private readonly opened: Opened,
  ) {
    const way = forest.nodes.get(opened.way)?.path ?? [];
    way.forEach((id, i) => {
      if (way[i + 1]) this.next.set(id, way[i + 1]!);
    });
    const root = forest.nodes.get(forest.root);
    if (root) this.walk(root, 1, 1, 1);
  }

  isOpen(id: string): boolean {
    return this.opened.all.has(id) || this.next.has(id);
  }

  private push(length: number, row: Run['row'], find: Run['find'] = () => -1): void {
    if (length <= 0) return;
    this.runs.push({start: this.length, length, row, find});
    this.length += length;
  }

  private walk(node: TreeNode, level: number, pos: number, size: number): void {
    const open = node.child_count > 0 && this.isOpen(node.id);
    this.push(
      1,
      (index) => ({kind: 'node', node, index, level, pos, size, open}),
      (id) => (id === node.id ? 0 : -1),
    );
    if (!open) return;
    if (!this.opened.all.has(node.id)) {
      const child = this.forest.nodes.get(this.next.get(node.id)!);
      if (child) this.walk(child, level + 1, 1, node.child_count);
      if (node.child_count > 1)
        this.push(1, () => ({kind: 'others', node, count: node.child_count - 1, level: level + 1}));
      return;
    }
    this.children(node, level + 1);
  }

  private children(node: TreeNode, level: number): void {
    const b = this.forest.branch(node.id);
    if (b.error && b.pages.size === 0) return this.push(1, () => ({kind: 'failed', branch: b, level}));
    if (b.pages.size === 0 && !b.count) b.count = node.child_count;
    const open = [...b.at]
      .filter(([id]) => this.isOpen(id) && (this.forest.nodes.get(id)?.child_count ?? 0) > 0)
      .sort((x, y) => x[1] - y[1]);
    let from = 0;
    for (const [id, at] of open) {
      this.leaves(b, from, at, level);
      this.walk(this.forest.nodes.get(id)!, level, at + 1, b.count);
      from = at + 1;
    }
    this.leaves(b, from, b.count, level);
    if (b.error) this.push(1, () => ({kind: 'failed', branch: b, level}));
  }

  private leaves(b: Branch, from: number, to: number, level: number): void {
    this.push(
      to - from,
      (i) => ({
        kind: 'node',
        node: this.forest.child(b, from + i),
        index: from + i,
        level,
        pos: from + i + 1,
        size: b.count,
        open: false,
        branch: b,
      }),
      (id) => {
        const at = b.at.get(id);
        return at !== undefined && at >= from && at < to ? at - from : -1;
      },
    );
  }

  at(i: number): Row | undefined {
    let low = 0,
      high = this.runs.length - 1;
    while (low <= high) {
      const mid = (low + high) >> 1,
        run = this.runs[mid]!;
      if (i < run.start) high = mid - 1;
      else if (i >= run.start + run.length) low = mid + 1;
      else return run.row(i - run.start);
    }
    return undefined;
  }

  indexOf(id: string): number {
    for (const run of this.runs) {
      const at = run.find(id);
      if (at >= 0) return run.start + at;
    }
    return -1;
  }
}
