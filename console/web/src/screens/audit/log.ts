// The entries that a screen shows: pages of the log, and those that are written while it is open.
import {signal} from '@preact/signals';
import {listAuditLogs, type AuditEntry, type ListAuditLogsData} from '@idplatform/sdk';
import {aborted, asProblem, call, type ApiError} from '../../lib/api';
import {parse} from '../../lib/json';
import {follow, type Follower, type Message, type StreamState} from '../../lib/stream';
import {spellings} from '../finding';

export type Filters = Pick<
  NonNullable<ListAuditLogsData['query']>,
  'actor' | 'entity' | 'record' | 'action' | 'outcome' | 'time_from' | 'time_to'
>;

const pageSize = 100;
const most = 2000; // rows of the stream: a screen may stay open for days

/** inParts are the filters by which all entries of an actor are found: a person may be written in two ways. */
export async function inParts(filters: Filters): Promise<Filters[]> {
  const {actor} = filters;
  return actor ? (await spellings(actor)).map((spelling) => ({...filters, actor: spelling})) : [filters];
}

/** A Part has the entries of some filters. */
interface Part {
  filters: Filters;
  waiting: AuditEntry[]; // the next ones, which are not shown yet
  next?: string;
  done: boolean; // all are there
  known: boolean; // that there are some
  total: number;
  more: boolean; // total is a lower bound
  follower?: Follower;
}

const part = (filters: Filters): Part => ({filters, waiting: [], done: false, known: false, total: 0, more: false});

/** A Log has the newest entries first. It follows the log unless the filters end in the past. */
export class Log {
  readonly rows = signal<AuditEntry[]>([]);
  readonly total = signal<number | undefined>(undefined);
  readonly more = signal(false); // total is a lower bound
  readonly busy = signal(true);
  readonly done = signal(false);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly state = signal<StreamState>({is: 'connecting'});
  private parts: Part[] = [];
  private paged = 0; // rows of pages: somebody may be reading them
  private until: string | undefined; // the time of the oldest row, once older ones have made room
  private loading = false;
  private ended = new AbortController();

  constructor(private filters: Filters) {
    void this.load();
  }

  /** load gets the next page; the first one starts the stream behind its newest entry. */
  async load() {
    if (this.loading || this.done.value) return;
    this.loading = this.busy.value = true;
    try {
      if (!this.parts.length) this.parts = (await inParts(this.filters)).map(part);
      for (let fresh = false; !fresh && !this.done.value; ) {
        const lacking = this.parts.filter((p) => !p.done && !p.waiting.length);
        await Promise.all(lacking.map((p) => this.loadPart(p)));
        fresh = this.put(this.take(), false); // a page from until on may have what is there already
      }
      this.error.value = undefined;
    } catch (e) {
      if (!this.ended.signal.aborted && !aborted(e)) this.error.value = asProblem(e);
    } finally {
      this.loading = this.busy.value = false;
    }
  }

  private async loadPart(p: Part) {
    p.waiting = await this.page(p);
    if (!this.until) this.follow(p, p.waiting);
  }

  private async page(p: Part, until = this.until): Promise<AuditEntry[]> {
    this.ended.signal.throwIfAborted();
    const page = await call(
      listAuditLogs({
        signal: this.ended.signal,
        query: {
          ...p.filters,
          ...(until ? {time_to: until} : {}),
          page_sort: 'time[desc]',
          page_size: pageSize,
          page_token: p.next,
          count: p.next || until ? 'false' : undefined,
        },
      }),
    );
    this.ended.signal.throwIfAborted();
    if (!p.next && !until) {
      p.total = page.total ?? 0;
      p.more = page.total_relation === 'gte';
      this.count();
    }
    p.next = page.next_page_token;
    p.done = !p.next;
    const items = page.items ?? [];
    p.known ||= items.length > 0;
    return items;
  }

  private count() {
    this.total.value = this.parts.reduce((sum, p) => sum + p.total, 0);
    this.more.value = this.parts.some((p) => p.more);
  }

  /** take returns what waits, the newest first: nothing that an entry of a page to come may be newer than. */
  private take(): AuditEntry[] {
    const taken: AuditEntry[] = [];
    while (this.parts.every((p) => p.done || p.waiting.length)) {
      const first = this.parts
        .filter((p) => p.waiting.length)
        .reduce<Part | undefined>((a, b) => (a && a.waiting[0]!.time >= b.waiting[0]!.time ? a : b), undefined);
      if (!first) break;
      taken.push(first.waiting.shift()!);
    }
    this.done.value = this.parts.every((p) => p.done && !p.waiting.length);
    return taken;
  }

  private follow(p: Part, items: AuditEntry[]) {
    if (p.follower) return;
    if (this.filters.time_to && Date.parse(this.filters.time_to) < Date.now()) {
      this.state.value = {is: 'off'};
      return;
    }
    // Ids grow in the order of writing, times almost: the highest id of the page is where the stream goes on.
    const last = items.reduce(
      (id, e) => (id.length > e.id.length || (id.length === e.id.length && id > e.id) ? id : e.id),
      '',
    );
    p.follower = follow(
      {
        open: ({headers, ...options}) => listAuditLogs({query: p.filters, headers: headers as never, ...options}),
        receive: (messages) => this.receive(p, messages),
      },
      last,
    );
    p.follower.state.subscribe((s) => {
      const states = this.parts.flatMap(({follower}) => (follower ? [follower.state.value] : []));
      this.state.value = states.find(({is}) => is !== 'live') ?? s;
      // Without an entry to continue after, the stream has begun when it came: some may have been written before.
      if (s.is === 'live' && !p.known) void this.lookAgain(p);
    });
  }

  private async lookAgain(p: Part) {
    try {
      this.put(await this.page(p, ''), this.rows.value.length > 0);
    } catch {
      /* the page was there a moment ago: it is still true, and the stream goes on */
    }
  }

  private receive(p: Part, messages: Message[]) {
    const fresh = messages.map((m) => parse(m.data) as AuditEntry).reverse();
    const before = this.rows.value.length;
    this.put(fresh, true);
    p.known = true;
    p.total += this.rows.value.length - before;
    this.count();
    this.makeRoom();
  }

  /** makeRoom drops the oldest rows. Whoever scrolls to the end gets them again, from the time of the last one on. */
  private makeRoom() {
    const room = most + this.paged;
    const last = this.rows.value[room - 1];
    if (this.loading || !last || this.rows.value.length === room) return;
    this.rows.value = this.rows.value.slice(0, room);
    this.until = new Date(Date.parse(last.time) + 1).toISOString(); // time_to is not included
    for (const p of this.parts) {
      p.waiting = [];
      p.next = undefined;
      p.done = false;
    }
    this.done.value = false;
  }

  /** put adds entries that are not there, and reports whether there were any. */
  private put(items: AuditEntry[], above: boolean): boolean {
    const known = new Set(this.rows.value.map((e) => e.id));
    const fresh = items.filter((e) => !known.has(e.id));
    if (!above) this.paged += fresh.length;
    if (fresh.length) this.rows.value = above ? [...fresh, ...this.rows.value] : [...this.rows.value, ...fresh];
    return fresh.length > 0;
  }

  again() {
    this.error.value = undefined;
    void this.load();
  }
  retry() {
    for (const p of this.parts) p.follower?.retry();
  }
  stop() {
    this.ended.abort();
    for (const p of this.parts) p.follower?.stop();
  }
}
