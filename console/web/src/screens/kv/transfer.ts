// Objects as a file, one JSON object a line: out of a bucket, and into one.
import {listKvObjects, putKvObject} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {saveFile} from '../../lib/csv';
import {parse} from '../../lib/json';
import {toast} from '../../ui/dialog';
import {t} from './text';

export const fileType = 'application/x-ndjson';

/** exportObjects saves the objects whose keys begin with a prefix, with their values. */
export async function exportObjects(bucket: string, prefix: string): Promise<void> {
  toast(t('exporting'));
  const lines: string[] = [];
  let token: string | undefined;
  try {
    do {
      const page = await call(
        listKvObjects({
          path: {bucket},
          query: {
            prefix: prefix || undefined,
            include_values: 'true',
            page_size: 200,
            page_token: token,
            count: 'false',
          },
        }),
      );
      for (const {key, value, content_type, time_expires} of page.items) {
        lines.push(JSON.stringify({key, value, content_type, time_expires}));
      }
      token = page.next_page_token;
    } while (token);
  } catch (e) {
    return toast(asProblem(e).message);
  }
  saveFile(`${bucket}.ndjson`, fileType, lines.map((l) => l + '\n').join(''));
  toast(t('exported', {n: lines.length}));
}

export interface Item {
  line: number;
  text: string; // as it was read, for the file of failures
  key: string;
  value: unknown;
  content_type?: string;
  ttl_seconds?: number;
}

export interface BadLine {
  line: number;
  text: string;
  why: string;
}

/** readItems reads a file; lines that cannot be read do not keep the others back. */
export function readItems(text: string): {items: Item[]; bad: BadLine[]} {
  const items: Item[] = [],
    bad: BadLine[] = [];
  text.split(/\r?\n/).forEach((raw, i) => {
    if (!raw.trim()) return;
    const at = {line: i + 1, text: raw};
    try {
      items.push({...at, ...readItem(parse(raw) as Record<string, unknown> | null)});
    } catch (e) {
      bad.push({...at, why: e instanceof Error ? e.message : String(e)});
    }
  });
  return {items, bad};
}

function readItem(o: Record<string, unknown> | null): Omit<Item, 'line' | 'text'> {
  if (typeof o?.key !== 'string' || !o.key) throw new Error(t('needKey'));
  if (!('value' in o)) throw new Error(t('needValue'));
  const {key, value} = o;
  let ttl = o.ttl_seconds as number | undefined;
  if (ttl === undefined && o.time_expires === null) ttl = 0;
  if (ttl === undefined && typeof o.time_expires === 'string') {
    ttl = Math.ceil((new Date(o.time_expires).getTime() - Date.now()) / 1000);
    if (!(ttl > 0)) throw new Error(t('expired'));
  }
  return {key, value, content_type: o.content_type as string | undefined, ttl_seconds: ttl};
}

export type Outcome = 'written' | 'skipped' | {failed: string};

/** writeItem writes one; without replace an object that is there stays as it is. */
export async function writeItem(bucket: string, item: Item, replace: boolean, signal: AbortSignal): Promise<Outcome> {
  const {key, value, content_type, ttl_seconds} = item;
  try {
    await call(
      putKvObject({
        path: {bucket, key},
        body: {value, content_type, ttl_seconds},
        headers: replace ? undefined : {'If-None-Match': '*'},
        signal,
      }),
    );
    return 'written';
  } catch (e) {
    const {problem, message} = asProblem(e);
    if (!replace && problem.status === 412) return 'skipped';
    return {failed: problem.errors?.map((f) => `${f.location} ${f.message}`).join('; ') || message};
  }
}
