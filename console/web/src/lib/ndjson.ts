// Imports: lines of JSON in, a result for each line out.
import {importUsers, type NewUserWritable} from '@idplatform/sdk';
import {call} from './api';

export interface LineResult {
  line: number;
  status: 'created' | 'updated' | 'skipped' | 'failed' | string;
  id?: string;
  errors?: {location: string; message: string}[];
}

export interface ImportOptions {
  conflict?: 'fail' | 'skip' | 'update';
  dryRun?: boolean;
  key?: string; // the same key and lines are carried out once
  signal?: AbortSignal;
}

/** importLines imports users, and returns a result for each, in order. */
export async function importLines(users: Partial<NewUserWritable>[], o: ImportOptions = {}): Promise<LineResult[]> {
  const body = new Blob([users.map((u) => JSON.stringify(u)).join('\n') + '\n'], {type: 'application/x-ndjson'});
  const text = await call(
    importUsers({
      body,
      parseAs: 'text',
      signal: o.signal,
      query: {on_conflict: o.conflict ?? 'fail', dry_run: o.dryRun ? 'true' : undefined},
      headers: o.key ? {'Idempotency-Key': o.key} : undefined,
    }),
  );
  return String(text)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LineResult);
}
