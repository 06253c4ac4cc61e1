// The tail: what it holds, where it starts, and what it says when events are missing.
import {signal} from '@preact/signals';
import {listEvents, type Event} from '@idplatform/sdk';
import {full} from '../../lib/api';
import {parse} from '../../lib/json';
import {follow, type Follower, type Message, type StreamState} from '../../lib/stream';
import {t} from './text';

export type Row = Event | Gap;

export interface Gap {
  id: string;
  gap: string; // a sentence
}

export const isGap = (row: Row): row is Gap => 'gap' in row;

export const most = 500; // rows that are kept
const before = 15 * 60_000; // ms: how far back the screen begins, so that it is not empty
const often = 200; // ms between two drawings of what has arrived

/** A Tail follows the events of some types, and keeps the newest. */
export class Tail {
  readonly rows = signal<Row[]>([]); // the newest first
  readonly fresh = signal(0); // events that arrived while it is paused
  readonly paused = signal(false);
  readonly dropped = signal(false); // rows have gone at the end
  readonly state = signal<StreamState>({is: 'connecting'});
  private arrived: Row[] = []; // the oldest first
  private lost = 0; // that arrived while paused, and were not kept
  private timer: number | undefined;
  private follower: Follower | undefined;
  private ended = false;
  private count = 0;

  constructor(
    private types: string,
    private subject: string,
  ) {
    void this.begin();
  }

  private async begin() {
    let after = 'now';
    try {
      const {response} = await full(listEvents({query: {after: 'now', limit: 1}}));
      const now = Date.parse(response.headers.get('Date') ?? ''); // this machine's clock may be wrong
      after = new Date(now - before).toISOString();
    } catch {
      /* the stream meets the same fault, and shows it */
    }
    if (this.ended) return;
    this.follower = follow({
      open: ({headers, ...options}) =>
        listEvents({
          query: {after: headers['Last-Event-ID'] ? undefined : after, types: this.types || undefined},
          headers: headers as never,
          ...options,
        }),
      receive: (messages) => this.receive(messages),
      refused: (error) => {
        // Nothing was shown before the first event: no gap then.
        const next = error.problem.next;
        if (error.problem.code !== 'invalid_state' || !next) return undefined;
        if (this.rows.value.length || this.arrived.length) this.add({id: `gap-${this.count++}`, gap: t('gap')});
        return next;
      },
    });
    this.follower.state.subscribe((s) => {
      this.state.value = s;
    });
  }

  private receive(messages: Message[]) {
    for (const m of messages) {
      let event: Event;
      try {
        event = parse(m.data) as Event;
      } catch {
        this.add({id: `gap-${this.count++}`, gap: t('gap')});
        continue;
      }
      if (!this.subject || event.subject === this.subject) this.add(event);
    }
  }

  private add(row: Row) {
    this.arrived.push(row);
    if (this.arrived.length > most) {
      this.arrived.shift();
      this.lost++;
    }
    this.timer ??= window.setTimeout(() => {
      this.timer = undefined;
      this.draw();
    }, often);
  }

  private draw() {
    if (this.paused.value) {
      this.fresh.value = this.arrived.length + this.lost;
      return;
    }
    const known = new Set(this.rows.value.map((r) => r.id)); // a reconnect may send an event again
    const next = this.arrived.filter((r) => !known.has(r.id)).reverse();
    if (this.lost && this.fresh.value) next.push({id: `gap-${this.count++}`, gap: t('gapPaused', {n: this.lost})});
    const all = [...next, ...this.rows.value];
    if (all.length > most || this.lost) this.dropped.value = true;
    this.rows.value = all.slice(0, most);
    this.arrived = [];
    this.lost = this.fresh.value = 0;
  }

  pause() {
    this.paused.value = true;
  }
  resume() {
    this.paused.value = false;
    this.draw();
  }
  clear() {
    this.rows.value = [];
    this.dropped.value = false;
  }
  retry() {
    this.follower?.retry();
  }
  stop() {
    this.ended = true;
    clearTimeout(this.timer);
    this.follower?.stop();
  }
}
