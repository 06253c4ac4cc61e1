// The keys of an import's batches: whoever chooses the same file after an interruption goes on where it was.
import {place} from '../../../lib/router';

const stored = 'idp.import'; // the last import that is not finished, in this tab

/** keysFor returns a key for each batch; they are the same for the same records until the import is finished. */
export async function keysFor(records: unknown[], conflict: string, batches: number): Promise<string[]> {
  const text = JSON.stringify([place.value.tenant, conflict, records]);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  const id = digest.join('-');
  try {
    const last = JSON.parse(sessionStorage.getItem(stored) ?? '{}') as {id?: string; keys?: string[]};
    if (last.id === id && last.keys?.length === batches) return last.keys;
    const keys = Array.from({length: batches}, () => crypto.randomUUID());
    sessionStorage.setItem(stored, JSON.stringify({id, keys}));
    return keys;
  } catch {
    return Array.from({length: batches}, () => crypto.randomUUID()); // storage is turned off
  }
}

export function forgetKeys(): void {
  try {
    sessionStorage.removeItem(stored);
  } catch {
    // nothing was kept
  }
}
