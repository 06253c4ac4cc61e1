// The last writes of this page, so that each can be shown as a command; and what a write would be, before it is sent.
// Secrets are masked before anything is kept. Nothing is stored: it ends with the page.
import {signal} from '@preact/signals';
import {isExact, parse} from './json';
import {session} from './session';

export interface Write {
  method: string;
  url: string; // with names in braces: /v1/users/{id}
  path: Record<string, string>; // values of these names
  query: Record<string, string>;
  headers: Record<string, string>; // those that matter
  body?: unknown; // JSON; absent where there is none, or it is a file
  file?: number; // the bytes of a body that is a file, or too long to be shown
  masked: boolean; // the body has secrets, which are not in it
  time: Date;
  status?: number; // of the answer; absent while there is none
}

const kept = 20;
const longest = 32 << 10; // bytes of a body that is shown
const headersThatMatter = ['Content-Type', 'If-Match', 'If-None-Match', 'Idempotency-Key', 'X-Tenant-Id'];

/** writes are the last writes, the newest first. */
export const writes = signal<Write[]>([]);

session.subscribe((s) => {
  if (!s.signed_in) writes.value = [];
});

// These answer a question, although they are POST.
const questions =
  /(-exist|-check|-query|-impact|\/fire-times|\/introspect|\/login-verification|\/pre-created-id)$|^\/access\//;

interface Sent {
  url?: string;
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
}

/** Held is thrown instead of sending a write that is only to be shown. */
export class Held extends Error {
  constructor(readonly write: Write) {
    super('shown, not sent');
  }
}

let holding = false;

/** seen is told of every request before it is sent. */
export function seen(request: Request, sent: Sent): void {
  if (['GET', 'HEAD'].includes(request.method) || questions.test(sent.url ?? '') || sent.query?.dry_run) return;
  const write = describe(request, sent);
  if (holding) throw new Held(write);
  writes.value = [write, ...writes.value].slice(0, kept);
  pending.set(request, write);
}

const pending = new WeakMap<Request, Write>();

/** answered notes the status of a write. */
export function answered(request: Request, response: Response): void {
  const write = pending.get(request);
  if (write) writes.value = writes.value.map((w) => (w === write ? {...w, status: response.status} : w));
}

/** held runs an action up to its first write, which is not sent, and returns it; undefined if there is none. */
export async function held(action: () => Promise<unknown>): Promise<Write | undefined> {
  holding = true;
  try {
    await action();
    return undefined;
  } catch (e) {
    if (e instanceof Held) return e.write;
    throw e;
  } finally {
    holding = false;
  }
}

function describe(request: Request, sent: Sent): Write {
  const text = typeof sent.body === 'object' && !(sent.body instanceof Blob) ? JSON.stringify(sent.body) : undefined;
  const hidden = {any: false};
  const write: Write = {
    method: request.method,
    url: sent.url ?? new URL(request.url).pathname,
    path: words(sent.path),
    query: words(sent.query),
    headers: {},
    masked: false,
    time: new Date(),
  };
  for (const name of headersThatMatter) {
    const value = request.headers.get(name);
    if (value) write.headers[name] = value;
  }
  if (sent.body instanceof Blob) write.file = sent.body.size;
  else if (text && text.length > longest) write.file = text.length;
  else if (text) write.body = masked(parse(text), hidden);
  write.masked = hidden.any;
  return write;
}

function words(values: Record<string, unknown> | undefined): Record<string, string> {
  const given = Object.entries(values ?? {}).filter(([, v]) => v !== undefined && v !== null);
  return Object.fromEntries(given.map(([k, v]) => [k, String(v)]));
}

export const mask = '******';
const secretNames = /(^|_)(password|passwd|secret|token|credential|authorization|cookie|id_number|pin)s?(_|$)|_key$/i;
const publicNames =
  /(^|_)public_key$|^(idempotency|primary|foreign)_key$|_(policy|enabled|required|url|uri|hint|id|endpoint|type|method|seconds|at)$/i;
const withPassword = /^([a-z][a-z0-9+.-]*:\/\/[^/@\s:]*):[^/@\s]+@/i;

function masked(value: unknown, hidden: {any: boolean}, name = ''): unknown {
  if (Array.isArray(value)) return value.map((v) => masked(v, hidden, name));
  if (typeof value === 'object' && value !== null && !isExact(value))
    // the variables of a function are secrets, whatever their names
    return Object.fromEntries(
      Object.entries(value).map(([k, v]) => [k, masked(v, hidden, name === 'env' ? 'secret' : k)]),
    );
  const text = typeof value === 'string' ? value : '';
  const secret = secretNames.test(name.replaceAll('-', '_')) && !publicNames.test(name.replaceAll('-', '_'));
  if (secret && text !== '') {
    hidden.any = true;
    return mask;
  }
  if (!withPassword.test(text)) return value;
  hidden.any = true;
  return text.replace(withPassword, `$1:${mask}@`);
}
