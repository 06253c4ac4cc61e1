// What people call the records of entries and events.
import type {AuditEntry} from '@idplatform/sdk';
import {isBatched, nameOf} from '../lib/names';
import {actorOf, nameOf as nameIn, recordHref} from '../ui/origin';

/** Entry is what an entry or an event tells of its record. */
export type Entry = Pick<AuditEntry, 'entity' | 'record' | 'action' | 'changes'>;

/** values are the members that an entry tells, as they are after it, or were before a record went. */
const values = (e: Entry): Record<string, unknown> =>
  Object.fromEntries((e.changes ?? []).map((c) => [c.member, c.after ?? c.before]));

/** tellsAll: a record that comes or goes changes all of its members. */
export const tellsAll = (e: Entry) => ['created', 'deleted'].includes(e.action);

const keyOf = (e: Entry) => `${e.entity} ${e.record}`;

/** Told is what the entries of a page tell of records: how each is called, and whether it is gone. */
export type Told = Map<string, {name: string; gone: boolean}>;

/** toldBy collects the names; of entries in which all members are, the newest is first, and counts. */
export function toldBy(entries: AuditEntry[]): Told {
  const told: Told = new Map();
  for (const e of entries) {
    const name = tellsAll(e) && nameIn(values(e));
    if (name && !told.has(keyOf(e))) told.set(keyOf(e), {name, gone: e.action === 'deleted'});
  }
  return told;
}

/** About is whom or what an entry is about: its record, or whom the record belongs to. */
export interface About {
  entity: string;
  id: string;
  name: string; // '' if no name is known
  more?: string; // beside the name
  gone?: boolean; // it cannot be opened any more
}

/** aboutOf names the record of an entry: as it was called then, as it is called now, or by whom it belongs to. */
export function aboutOf(e: Entry, told: Told, find: (kind: string, id: string) => string = nameOf): About {
  const is = values(e),
    known = told.get(keyOf(e)),
    own = {entity: e.entity, id: e.record, gone: known?.gone};
  if (tellsAll(e) && nameIn(is)) return {...own, name: nameIn(is)};
  const batched = isBatched(e.entity) ? find(e.entity, e.record) : '';
  const name = batched || known?.name || nameIn(is);
  if (name) return {...own, name};
  const [entity, id] = ownerOf(is);
  const owner = find(entity, id);
  if (owner) return {entity, id, name: owner, more: text(is.node_name)};
  return {...own, name: id ? '' : find(e.entity, e.record)};
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');

function ownerOf(is: Record<string, unknown>): [entity: string, id: string] {
  const user = text(is.user_id);
  return user ? ['user', user] : ['application', text(is.app_id) || text(is.application_id)];
}

/**
 * askNames asks for the names of all entries, so that rows that come into sight later make no calls. Names that cost a
 * call each are left to the rows that are seen.
 */
export function askNames(entries: AuditEntry[], told: Told): void {
  const batched = (kind: string, id: string) => (isBatched(kind) ? nameOf(kind, id) : '');
  for (const e of entries) {
    aboutOf(e, told, batched);
    batched(...actorOf(e.actor));
  }
}

/**
 * Named is the name of an entry's record, and leads to it unless it is gone; its id if nobody knows a name. In a row it
 * is no stop of the Tab key: the panel of the row has the same link.
 */
export function Named({entry: e, told, inRow}: {entry: Entry; told: Told; inRow?: boolean}) {
  const {entity, id, name, more, gone} = aboutOf(e, told);
  if (!name) return <span class="mono num clip">{id}</span>;
  const link = !gone && recordHref(entity, id);
  return (
    <span class="row">
      {link ? (
        <a class="clip" href={link} tabIndex={inRow ? -1 : undefined}>
          {name}
        </a>
      ) : (
        <span class="clip">{name}</span>
      )}
      {more && <span class="faint clip">{more}</span>}
    </span>
  );
}
