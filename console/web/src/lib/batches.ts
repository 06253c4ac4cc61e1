// Work on many records in batches, each with a key: what is interrupted goes on where it was. A batch is all or
// nothing, so records that it is refused for are set aside, and the others sent again.
import {signal} from '@preact/signals';
import {ApiError, asProblem} from './api';

export interface Item {
  id: string;
  name: string; // for people who read the list of failures
}

export interface Failure<I extends Item> {
  item: I;
  reason: string;
}

/** The most that an operation takes at once. */
export const batchSize = 1000;

export type Send<R> = (ids: string[], key: string) => Promise<R>;

export class Work<I extends Item, R> {
  readonly done = signal<I[]>([]);
  readonly failures = signal<Failure<I>[]>([]);
  readonly results: R[] = [];
  readonly going = signal(false);
  readonly error = signal<ApiError | undefined>(undefined); // what stopped it; go() goes on
  readonly spent = signal(0); // milliseconds in which it was going

  private left: I[];
  private size = batchSize;
  private key = crypto.randomUUID();

  constructor(
    readonly items: I[],
    private readonly send: Send<R>,
  ) {
    this.left = items;
  }

  get count(): number {
    return this.done.value.length + this.failures.value.length;
  }

  get finished(): boolean {
    return this.count >= this.items.length;
  }

  /** rate is how many records are done in a second. */
  get rate(): number {
    return this.spent.value ? Math.round((this.count / this.spent.value) * 1000) : 0;
  }

  pause(): void {
    this.going.value = false;
  }

  private running: Promise<void> | undefined;

  /** go sends batch after batch, until all are done, something stops it, or somebody pauses it. */
  go(): Promise<void> {
    this.going.value = true; // a loop whose batch was not answered yet when it was paused goes on
    this.running ??= this.loop().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private async loop(): Promise<void> {
    this.error.value = undefined;
    while (this.going.value && this.left.length) {
      const begun = performance.now();
      await this.next();
      this.spent.value += performance.now() - begun;
    }
    this.going.value = false;
  }

  private async next(): Promise<void> {
    const batch = this.left.slice(0, this.size);
    try {
      this.results.push(
        await this.send(
          batch.map((i) => i.id),
          this.key,
        ),
      );
      this.done.value = [...this.done.value, ...batch];
      this.left = this.left.slice(batch.length);
      this.size = Math.min(batchSize, this.size * 2);
    } catch (e) {
      if (!this.setAside(batch, asProblem(e))) {
        this.error.value = asProblem(e);
        this.going.value = false;
        return; // with the same key: it may have been carried out
      }
    }
    this.key = crypto.randomUUID();
  }

  // setAside takes out the records that a refusal names; if it names none, it looks for them in halves. False: the
  // refusal is about something else.
  private setAside(batch: I[], {problem}: ApiError): boolean {
    const named = new Map<number, string>();
    for (const e of problem.errors ?? []) {
      const index = /\bids\[(\d+)\]/.exec(e.location)?.[1];
      if (index !== undefined) named.set(Number(index), e.message);
    }
    const aboutRecords = [404, 409, 422].includes(problem.status) && problem.code !== 'request_in_progress';
    if (named.size === 0 && (problem.errors?.length || !aboutRecords)) return false;
    if (named.size === 0 && batch.length > 1) {
      this.size = Math.ceil(batch.length / 2);
      return true;
    }
    const reason = (i: number) => named.get(i) ?? (named.size === 0 ? (problem.detail ?? problem.code) : undefined);
    const out = batch.flatMap((item, i) => (reason(i) === undefined ? [] : [{item, reason: reason(i)!}]));
    this.failures.value = [...this.failures.value, ...out];
    const gone = new Set(out.map((f) => f.item));
    this.left = this.left.filter((i) => !gone.has(i));
    return true;
  }
}
