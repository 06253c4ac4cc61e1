// All users that match, as one stream: in the order of ids, so that changes of them do not disturb it.
import {exportUsers, type User} from '@idplatform/sdk';
import {call} from '../../../lib/api';
import type {Item} from '../../../lib/batches';
import type {Query} from '../../../ui/list';
import {filtersOf} from '../filters';

export interface Person extends Item {
  username: string;
  locked: boolean;
}

export function personOf(u: User): Person {
  return {id: u.id, name: u.display_name || u.username, username: u.username, locked: u.locked};
}

/** collect finds all users that match, and tells how many it has. */
export async function collect(query: Query, found: (n: number) => void, signal: AbortSignal): Promise<Person[]> {
  const people: Person[] = [];
  await streamUsers(query, 'ndjson', signal, (text) => {
    for (const line of text.split('\n')) if (line) people.push(personOf(JSON.parse(line) as User));
    found(people.length);
  });
  return people;
}

/** streamUsers hands on the export's text, in whole lines. */
export async function streamUsers(
  query: Query,
  format: 'ndjson' | 'csv',
  signal: AbortSignal,
  take: (lines: string) => void,
): Promise<void> {
  const body = (await call<unknown>(
    exportUsers({query: {...filtersOf(query), format}, parseAs: 'stream', signal}),
  )) as ReadableStream<Uint8Array>;
  const reader = body
    .pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>)
    .getReader();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) break;
    const text = rest + value;
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    if (end) take(text.slice(0, end));
  }
  if (rest) take(rest);
}
