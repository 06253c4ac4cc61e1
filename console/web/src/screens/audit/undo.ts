// Undo of an entry: the comparison of its change with the record as it is now, and the way back.
import {listAuditLogs, type AuditEntry} from '@idplatform/sdk';
import {ApiError, call} from '../../lib/api';
import {own} from '../../lib/own';
import {isObject, same, type Fields} from '../../lib/patch';
import {inverseOf, targetOf, type Key, type Target} from './targets';

export type Fate = 'back' | 'already' | 'since' | 'masked';

export interface Line {
  member: string;
  now: unknown;
  before: unknown;
  fate: Fate;
}

export interface Plan {
  lines: Line[];
  key: Key;
  record: Fields; // as it is now
  patch: Fields;
}

/** undoable says how the change of an entry can be undone, if it can. */
export function undoable(e: AuditEntry): Target | undefined {
  if (e.outcome !== 'done' || !e.changes?.some((c) => !follows(c.member))) return undefined;
  return targetOf(e);
}

// Members that follow from others: they go back with them.
const following = ['path', 'depth', 'arn', 'node_path', 'node_name', 'version', 'next_fire_time'];

function follows(member: string): boolean {
  return following.includes(member) || /_count$|^time_/.test(member);
}

/** plan compares an entry with the record as it is now. What others have changed since is left alone. */
export async function plan(e: AuditEntry, target: Target, signal?: AbortSignal): Promise<Plan> {
  const key = {id: e.record, parent: target.parent ? await firstValue(e, target.parent, signal) : ''};
  const record = await target.get(key, signal);
  const lines = e.changes
    .filter((c) => !follows(c.member))
    .map((c): Line => ({member: c.member, now: own(record, c.member), before: c.before, fate: fateOf(c, record)}));
  const patch = Object.fromEntries(
    lines.filter((l) => l.fate === 'back').map((l) => [l.member, patchOf(l.now, l.before)]),
  );
  return {lines, key, record, patch};
}

function fateOf(c: AuditEntry['changes'][number], record: Fields): Fate {
  const now = own(record, c.member);
  if (notKept(c.before) || notKept(c.after)) return 'masked';
  if (equal(now, c.before)) return 'already';
  return equal(now, c.after) ? 'back' : 'since';
}

/** firstValue reads a member that never changes from the record's first entry: the path of the record needs it. */
async function firstValue(e: AuditEntry, member: string, signal?: AbortSignal): Promise<string> {
  const query = {entity: e.entity, record: e.record, action: 'created', page_size: 1};
  const page = await call(listAuditLogs({query, signal}));
  const value = page.items?.[0]?.changes?.find((c) => c.member === member)?.after;
  if (typeof value !== 'string') throw new ApiError({status: 404, code: 'not_found'});
  return value;
}

export async function carryOut(e: AuditEntry, target: Target, p: Plan): Promise<void> {
  const inverse = inverseOf(e);
  if (inverse) {
    const before = Object.fromEntries(e.changes.map((c) => [c.member, c.before]));
    await call(inverse(p.key, before) as Promise<{data?: unknown}>);
    return;
  }
  const whole = {
    ...p.record,
    ...Object.fromEntries(p.lines.filter((l) => l.fate === 'back').map((l) => [l.member, l.before])),
  };
  await target.write({key: p.key, patch: p.patch, whole, headers: {'If-Match': `"${String(p.record.version)}"`}});
}

/** patchOf is a merge patch of one member: members of an object that were not there before go. */
function patchOf(now: unknown, before: unknown): unknown {
  if (!isObject(now) || !isObject(before)) return before ?? null;
  const gone = Object.keys(now)
    .filter((k) => !Object.hasOwn(before, k))
    .map((k) => [k, null]);
  return {
    ...Object.fromEntries(gone),
    ...Object.fromEntries(Object.entries(before).map(([k, v]) => [k, patchOf(own(now, k), v)])),
  };
}

/** A member that nobody has set is missing, null or empty: the log does not tell these apart. */
function equal(a: unknown, b: unknown): boolean {
  return (unset(a) && unset(b)) || same(a, b);
}

function unset(v: unknown): boolean {
  return v === undefined || v === null || v === '' || (typeof v === 'object' && Object.keys(v).length === 0);
}

/** The log has neither secrets nor values above 8 KiB. */
function notKept(v: unknown): boolean {
  const text = JSON.stringify(v) ?? '';
  return text.includes('******') || /^"\(\d+ bytes\)"$/.test(text);
}
