// A write as a command: of curl, and of idp.
import operations from 'idp:operations';
import {isObject} from './patch';
import type {Write} from './writes';

/** quoted is a word for a POSIX shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function lines(parts: string[]): string {
  return parts.join(' \\\n  ');
}

/** asCurl is the request itself. The token comes from $TOKEN. */
export function asCurl(w: Write): string {
  const path = w.url.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(w.path[name] ?? ''));
  const query = new URLSearchParams(w.query).toString();
  const parts = [`curl -X ${w.method} ${quoted(`${location.origin}${path}${query && `?${query}`}`)}`];
  parts.push('-H "Authorization: Bearer $TOKEN"');
  for (const [name, value] of Object.entries(w.headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (w.body !== undefined) parts.push(`--data ${quoted(JSON.stringify(w.body))}`);
  else if (w.file !== undefined) parts.push(`--data-binary @${bodyFile(w)}`);
  return lines(parts);
}

/** asIdp is the command of the program idp: path values are arguments, all else is flags. */
export function asIdp(w: Write): string {
  const id = operations[`${w.method} ${w.url}`];
  const names = [...w.url.matchAll(/\{(\w+)\}/g)].map((m) => m[1]!);
  const first = id
    ? [id, ...names.map((n) => w.path[n] ?? '')]
    : [w.method, w.url.replace(/\{(\w+)\}/g, (_, name: string) => w.path[name] ?? '')];
  const parts = [`idp api ${first.map(quoted).join(' ')}`];
  const tenant = w.headers['X-Tenant-Id'];
  if (tenant) parts.push(`--tenant ${quoted(tenant)}`);
  const version = /^"(\d+)"$/.exec(w.headers['If-Match'] ?? '')?.[1];
  if (version) parts.push(`--if-version ${version}`);
  for (const [name, value] of Object.entries(w.query)) parts.push(flag('query', name, value));
  return lines([...parts, ...bodyFlags(w)]);
}

function bodyFlags(w: Write): string[] {
  if (w.file !== undefined) return [`--data @${bodyFile(w)}`];
  if (w.body === undefined) return [];
  const members = isObject(w.body) ? Object.entries(w.body) : [];
  if (members.length === 0 || !members.every(([, value]) => fitsFlag(value)))
    return [`--data ${quoted(JSON.stringify(w.body))}`];
  return members.flatMap(([name, value]) =>
    isTexts(value)
      ? value.map((v) => flag('body', name, v))
      : [flag('body', name, typeof value === 'string' ? value : JSON.stringify(value))],
  );
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((v) => typeof v === 'string');
}

// A flag says neither null nor an empty list, and takes a list of texts one by one.
function fitsFlag(value: unknown): boolean {
  return value !== null && (!isTexts(value) || (value.length > 0 && value.length <= 10));
}

// The flags of all commands: a member of that name has its place before it.
const reserved = [
  'context',
  'tenant',
  'output',
  'jq',
  'fields',
  'all',
  'yes',
  'curl',
  'verbose',
  'wait',
  'help',
  'data',
  'field',
];

function flag(place: string, name: string, value: string): string {
  const dashed = name.replaceAll('_', '-').toLowerCase();
  const full = `--${reserved.includes(dashed) ? `${place}-` : ''}${dashed}`;
  if (value === 'true') return full;
  return value === 'false' || value.startsWith('-') ? `${full}=${quoted(value)}` : `${full} ${quoted(value)}`;
}

/** bodyFile names the file that a command takes its body from. */
export function bodyFile(w: Write): string {
  return /ndjson/.test(w.headers['Content-Type'] ?? '') ? 'body.ndjson' : 'body.json';
}
