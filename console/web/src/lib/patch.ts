// Merge patches (RFC 7396) of what a person has changed, and the meeting of two changes.
export type Json = null | boolean | number | string | Json[] | {[key: string]: Json};
export type Fields = Record<string, unknown>;

export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.keys(a),
    right = Object.keys(b);
  return left.length === right.length && left.every((k) => k in b && same((a as Fields)[k], (b as Fields)[k]));
}

/** diff returns the merge patch that makes `to` of `from`; undefined if they are the same. */
export function diff(from: Fields, to: Fields): Fields | undefined {
  const patch: Fields = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const a = from[key],
      b = to[key];
    if (same(a, b)) continue;
    if (!(key in to) || b === undefined) patch[key] = null;
    else if (isObject(a) && isObject(b)) patch[key] = diff(a, b);
    else patch[key] = b;
  }
  return Object.keys(patch).length ? patch : undefined;
}

/** pick returns some members of a record. */
export function pick(from: Fields, members: string[]): Fields {
  return Object.fromEntries(members.map((m) => [m, from[m]]));
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
    .filter((f) => !same(base[f], mine[f]) && !same(base[f], theirs[f]) && !same(theirs[f], mine[f]))
    .map((field) => ({field, base: base[field], theirs: theirs[field], mine: mine[field]}));
}
