// The entries that a screen shows: pages of the log, and those that are written while it is open.
import {signal} from '@preact/signals';
import {listAuditLogs, type AuditEntry, type ListAuditLogsData} from '@idplatform/sdk';
import {aborted, asProblem, call, type ApiError} from '../../lib/api';
import {parse} from '../../lib/json';
import {follow, type Follower, type Message, type StreamState} from '../../lib/stream';

export type Filters = Pick<
  NonNullable<ListAuditLogsData['query']>,
  'actor' | 'entity' | 'record' | 'action' | 'outcome' | 'time_from' | 'time_to'
>;

const pageSize = 100;
const most = 2000; // rows of the stream: a screen may stay open for days

/** A Log has the newest entries first. It follows the log unless the filters end in the past. */
export class Log {
  readonly rows = signal<AuditEntry[]>([]);
  readonly total = signal<number | undefined>(undefined);
  readonly more = signal(false); // total is a lower bound
  readonly busy = signal(true);
  readonly done = signal(false);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly state = signal<StreamState>({is: 'connecting'});
  private next: string | undefined;
  private paged = 0; // rows of pages: somebody may be reading them
  private until: string | undefined; // the time of the oldest row, once older ones have made room
  private loading = false;
  private ended = new AbortController();
  private follower: Follower | undefined;

  constructor(private filters: Filters) {
    void this.load();
  }

  /** load gets the next page; the first one starts the stream behind its newest entry. */
  async load() {
    if (this.loading || this.done.value) return;
    this.loading = this.busy.value = true;
    try {
      const first = !this.next && !this.until;
      for (let fresh = false; !fresh && !this.done.value; ) {
        const items = await this.page();
        if (first) this.follow(items);
        fresh = this.put(items, false) || first; // a page from until on may have what is there already
      }
      this.error.value = undefined;
    } catch (e) {
      if (!this.ended.signal.aborted && !aborted(e)) this.error.value = asProblem(e);
    } finally {
      this.loading = this.busy.value = false;
    }
  }

  private async page(): Promise<AuditEntry[]> {
    const page = await call(
      listAuditLogs({
        signal: this.ended.signal,
        query: {
          ...this.filters,
          ...(this.until ? {time_to: this.until} : {}),
          page_sort: 'time[desc]',
          page_size: pageSize,
          page_token: this.next,
          count: this.next || this.until ? 'false' : undefined,
        },
      }),
    );
    this.ended.signal.throwIfAborted();
    if (!this.next && !this.until) {
      this.total.value = page.total;
      this.more.value = page.total_relation === 'gte';
    }
    this.next = page.next_page_token;
    this.done.value = !this.next;
    return page.items ?? [];
  }

  private follow(items: AuditEntry[]) {
    if (this.follower || (this.filters.time_to && Date.parse(this.filters.time_to) < Date.now())) {
      this.state.value = {is: 'off'};
      return;
    }
    // Ids grow in the order of writing, times almost: the highest id of the page is where the stream goes on.
    const last = items.reduce(
      (id, e) => (id.length > e.id.length || (id.length === e.id.length && id > e.id) ? id : e.id),
      '',
    );
    this.follower = follow(
      {
        open: ({headers, ...options}) => listAuditLogs({query: this.filters, headers: headers as never, ...options}),
        receive: (messages) => this.receive(messages),
      },
      last,
    );
    this.follower.state.subscribe((s) => {
      this.state.value = s;
      // Without an entry to continue after, the stream has begun when it came: some may have been written before.
      if (s.is === 'live' && !this.rows.value.length) void this.lookAgain();
    });
  }

  private async lookAgain() {
    try {
      this.put(await this.page(), false);
    } catch {
      /* the page was there a moment ago: it is still true, and the stream goes on */
    }
  }

  private receive(messages: Message[]) {
    const fresh = messages.map((m) => parse(m.data) as AuditEntry).reverse();
    const before = this.rows.value.length;
    this.put(fresh, true);
    if (this.total.value !== undefined) this.total.value += this.rows.value.length - before;
    this.makeRoom();
  }

  /** makeRoom drops the oldest rows. Whoever scrolls to the end gets them again, from the time of the last one on. */
  private makeRoom() {
    const room = most + this.paged;
    const last = this.rows.value[room - 1];
    if (this.loading || !last || this.rows.value.length === room) return;
    this.rows.value = this.rows.value.slice(0, room);
    this.until = new Date(Date.parse(last.time) + 1).toISOString(); // time_to is not included
    this.next = undefined;
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
    this.follower?.retry();
  }
  stop() {
    this.ended.abort();
    this.follower?.stop();
  }
}
