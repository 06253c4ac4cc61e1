// Server-Sent Events over fetch: with the client's headers, and resumed by id after every interruption.
import {signal, type Signal} from '@preact/signals';
import {aborted, asProblem, full, type ApiError} from './api';

export interface Message {
  id: string;
  event: string;
  data: string;
}

export type StreamState =
  | {is: 'connecting' | 'live' | 'off'}
  | {is: 'waiting'; until: number; error?: ApiError} // tries again at this time
  | {is: 'failed'; error: ApiError}; // does not try again by itself

export interface Source {
  /** open asks for the stream, after the id of what was received last, or from the start that the caller wants. */
  open: (options: {
    parseAs: 'stream';
    signal: AbortSignal;
    headers: Record<string, string>;
  }) => Promise<{data?: unknown; error?: unknown; response?: Response}>;
  receive: (messages: Message[]) => void;
  /** refused handles an answer that will not change by itself: the id to go on after, or undefined to give up. */
  refused?: (error: ApiError) => string | undefined;
}

export interface Follower {
  state: Signal<StreamState>;
  retry: () => void;
  stop: () => void;
}

// The platform sends a comment every 15 s: after three missing ones the connection is dead, even if nobody has said so.
const silence = 45_000;
const delays = [1000, 2000, 5000, 10_000, 20_000, 30_000];

/** follow reads a stream until it is stopped. */
export function follow(source: Source, after = ''): Follower {
  const state = signal<StreamState>({is: 'connecting'});
  const stopped = new AbortController();
  let last = after,
    failures = 0,
    wake = () => {};
  const pause = (ms: number, error?: ApiError) =>
    new Promise<void>((resolve) => {
      state.value = {is: 'waiting', until: Date.now() + ms, error};
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const connect = async () => {
    const connection = new AbortController();
    const end = () => connection.abort();
    stopped.signal.addEventListener('abort', end);
    let quiet = setTimeout(end, silence);
    try {
      const {data} = await full(
        source.open({
          parseAs: 'stream',
          signal: connection.signal,
          headers: {Accept: 'text/event-stream', ...(last && {'Last-Event-ID': last})},
        }) as Promise<{data?: ReadableStream<Uint8Array>; error?: unknown; response?: Response}>,
      );
      state.value = {is: 'live'};
      failures = 0;
      const reader = data.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
      const parse = parser((id) => {
        last = id;
      });
      for (;;) {
        const {value, done} = await reader.read();
        if (done) return;
        clearTimeout(quiet);
        quiet = setTimeout(end, silence);
        const messages = parse(value);
        if (messages.length) source.receive(messages);
      }
    } finally {
      clearTimeout(quiet);
      stopped.signal.removeEventListener('abort', end);
    }
  };
  const run = async () => {
    while (!stopped.signal.aborted) {
      if (state.value.is !== 'connecting') state.value = {is: 'connecting'};
      let error: ApiError | undefined;
      try {
        await connect(); // a clean end: the server drains, another replica goes on
      } catch (e) {
        if (stopped.signal.aborted) break;
        if (!aborted(e)) error = asProblem(e);
      }
      if (stopped.signal.aborted) break;
      const status = error?.problem.status ?? 0;
      if (error && status >= 400 && status < 500 && status !== 408 && status !== 429) {
        const next = source.refused?.(error);
        if (next === undefined || next === last) {
          // the same again would be refused again
          state.value = {is: 'failed', error};
          await new Promise<void>((resolve) => {
            wake = resolve;
            stopped.signal.addEventListener('abort', () => resolve());
          });
        } else last = next;
        continue;
      }
      await pause(Math.max(delays[Math.min(failures++, delays.length - 1)]!, (error?.retryAfter ?? 0) * 1000), error);
    }
    state.value = {is: 'off'};
  };
  // Whoever comes back to the page, or to the network, does not wait for the next attempt.
  const back = () => {
    if (state.value.is === 'waiting' && !document.hidden) wake();
  };
  addEventListener('online', back);
  document.addEventListener('visibilitychange', back);
  void run();
  return {
    state,
    retry: () => wake(),
    stop: () => {
      stopped.abort();
      wake();
      removeEventListener('online', back);
      document.removeEventListener('visibilitychange', back);
    },
  };
}

/** parser takes pieces of a stream, and returns the complete events. A block with an id alone moves the place. */
function parser(place: (id: string) => void) {
  let rest = '',
    id = '',
    event = '',
    data: string[] = [];
  return (piece: string): Message[] => {
    const messages: Message[] = [];
    const lines = (rest + piece).split('\n');
    rest = lines.pop()!;
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (id) place(id);
        if (data.length) messages.push({id, event, data: data.join('\n')});
        id = event = '';
        data = [];
        continue;
      }
      const at = line.indexOf(':');
      const field = at < 0 ? line : line.slice(0, at),
        value = at < 0 ? '' : line.slice(at + 1).replace(/^ /, '');
      if (field === 'id') id = value;
      else if (field === 'event') event = value;
      else if (field === 'data') data.push(value);
    }
    return messages;
  };
}
