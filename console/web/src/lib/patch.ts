// Merge patches (RFC 7396) of what a person has changed, and the meeting of two changes.
import {own} from './own';
export type Json = null | boolean | number | string | Json[] | {[key: string]: Json};
export type Fields = Record<string, unknown>;

export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.keys(a),
    right = Object.keys(b);
  return (
    left.length === right.length && left.every((k) => Object.hasOwn(b, k) && same((a as Fields)[k], (b as Fields)[k]))
  );
}

/** diff returns the merge patch that makes `to` of `from`; undefined if they are the same. */
export function diff(from: Fields, to: Fields): Fields | undefined {
  const changed = [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .map((key) => ({key, a: own(from, key), b: own(to, key)}))
    .filter(({a, b}) => !same(a, b))
    .map(({key, a, b}) => [key, isObject(a) && isObject(b) ? diff(a, b) : (b ?? null)]);
  return changed.length ? (Object.fromEntries(changed) as Fields) : undefined;
}

/** pick returns some members of a record. */
export function pick(from: Fields, members: string[]): Fields {
  return Object.fromEntries(members.map((m) => [m, own(from, m)]));
}

/** isObject is true for what JSON calls an object; those of classes are values of their own. */
export function isObject(v: unknown): v is Fields {
  return typeof v === 'object' && v !== null && Object.getPrototypeOf(v) === Object.prototype;
}

export interface Conflict {
  field: string;
  base: unknown;
  theirs: unknown;
  mine: unknown;
}

/** conflicts lists the fields of mine that they have changed, too, and differently. */
export function conflicts(base: Fields, theirs: Fields, mine: Fields): Conflict[] {
  return Object.keys(mine)
    .map((field) => ({field, base: own(base, field), theirs: own(theirs, field), mine: mine[field]}))
    .filter((c) => !same(c.base, c.mine) && !same(c.base, c.theirs) && !same(c.theirs, c.mine));
}
