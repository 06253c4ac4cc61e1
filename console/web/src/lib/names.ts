// The names of records by their ids.
import {
  getAuthMethod,
  getAuthTemplate,
  getComponent,
  getConnection,
  getEventSubscription,
  getFunction,
  getJob,
  getScimConnection,
  getTreeNode,
  getTreeUser,
  listApplications,
  listAuthUnits,
  listCoreObjects,
  listResources,
  listResourceSets,
  listUsers,
} from '@idplatform/sdk';
import {signal, type Signal} from '@preact/signals';
import {call} from './api';
import {changes} from './load';
import {own} from './own';
import {place} from './router';
import {connectionName} from '../ui/providers';
import {may} from './session';

/**
 * together finds records by their ids: those that are asked for at one moment by one call for each 200. What cannot be
 * read is undefined.
 */
export function together<T extends {id: string}>(scope: string, list: (ids: string) => Promise<T[] | null>) {
  const most = 200; // the services take so many
  const wanted = new Set<string>();
  let answer: Promise<Map<string, T>>;
  const ask = async () => {
    const ids = [...wanted];
    wanted.clear();
    const parts: Promise<T[] | null>[] = [];
    for (let i = 0; may(scope) && i < ids.length; i += most)
      parts.push(list(ids.slice(i, i + most).join(',')).catch(() => null));
    return new Map((await Promise.all(parts)).flatMap((part) => part ?? []).map((found) => [found.id, found]));
  };
  return (id: string): Promise<T | undefined> => {
    if (!wanted.size) answer = Promise.resolve().then(ask);
    wanted.add(id);
    return answer.then((found) => found.get(id));
  };
}

export type Find = (id: string) => Promise<string>;

function named<T extends {id: string}>(
  scope: string,
  list: (ids: string) => Promise<T[] | null>,
  name: (found: T) => string,
): Find {
  const find = together(scope, list);
  return async (id) => {
    const found = await find(id);
    return found ? name(found) : '';
  };
}

const whole = {page_size: 200, count: 'false'} as const;
const items = <T>(sent: Promise<{data?: {items: T[] | null}}>) => call(sent).then((page) => page.items);

/** finders are by kind, for those whose lists take ids. */
const finders: Record<string, Find> = {
  user: named(
    'users:read',
    (ids) => items(listUsers({query: {ids, ...whole}})),
    (u) => u.display_name || u.username,
  ),
  application: named(
    'applications:read',
    (ids) => items(listApplications({query: {ids, ...whole}})),
    (a) => a.name,
  ),
  auth_unit: named(
    'permissions:read',
    (ids) => items(listAuthUnits({query: {ids, ...whole}})),
    (u) => u.identity_name,
  ),
  resource: named(
    'permissions:read',
    (ids) => items(listResources({query: {ids, ...whole}})),
    (r) => r.name || r.code,
  ),
  resource_set: named(
    'permissions:read',
    (ids) => items(listResourceSets({query: {ids, ...whole}})),
    (s) => s.name || s.code,
  ),
  core_object: named(
    'organization:read',
    () => call(listCoreObjects()),
    (o) => o.name,
  ),
};

/** one finds the name of a record by a call of its own. */
const one =
  <T>(scope: string, get: (id: string) => Promise<T>, name: (found: T) => string | Promise<string>): Find =>
  async (id) =>
    may(scope) ? name(await get(id)) : '';

const ofName = (found: {name: string}) => found.name;

/** singles are by kind, for those whose lists take no ids. */
const singles: Record<string, Find> = {
  auth_method: one('identity-sources:read', (id) => call(getAuthMethod({path: {id}})), ofName),
  auth_template: one('identity-sources:read', (id) => call(getAuthTemplate({path: {id}})), ofName),
  client: one(
    'applications:read',
    async (id) => {
      const {items} = await call(listApplications({query: {keyword: id, page_size: 2, count: 'false'}}));
      return items?.find((a) => a.client_id === id);
    },
    (a) => a?.name ?? '',
  ),
  component: one('functions:read', (id) => call(getComponent({path: {id}})), ofName),
  connection: one('identity-sources:read', (id) => call(getConnection({path: {id}})), connectionName),
  event_subscription: one('events:read', (id) => call(getEventSubscription({path: {id}})), ofName),
  function: one('functions:read', (id) => call(getFunction({path: {id}})), ofName),
  job: one('jobs:read', (id) => call(getJob({path: {id}})), ofName),
  membership: one(
    'organization:read',
    (id) => call(getTreeUser({path: {id}})),
    (m) => finders.user!(m.user_id),
  ),
  node: one('organization:read', (id) => call(getTreeNode({path: {id}})), ofName),
  scim_connection: one('provisioning:read', (id) => call(getScimConnection({path: {id}})), ofName),
};

/** isBatched: the names of many records of a kind cost one call. */
export const isBatched = (kind: string) => Object.hasOwn(finders, kind);

const finderOf = (kind: string): Find | undefined => own(singles, kind) ?? own(finders, kind);

/** findName asks for the name of a record; '' if there is none that may be read. */
export const findName: (kind: string, id: string) => Promise<string> = (kind, id) =>
  finderOf(kind)?.(id).catch(() => '') ?? Promise.resolve('');

interface Known {
  name: Signal<string>;
  age: number;
}

const names = new Map<string, Known>();
const keyOf = (kind: string, id: string) => `${place.value.tenant} ${kind} ${id}`;

let age = 0; // grows with every change that this page makes: a name may be another one then
changes.subscribe(() => age++);

/**
 * nameOf is the name of a record, which is asked for once; '' until it is there, and if there is none. Whoever shows
 * many names asks for all of them at one moment.
 */
export function nameOf(kind: string, id: string, find: Find | undefined = finderOf(kind)): string {
  if (!id || !find) return '';
  const key = keyOf(kind, id);
  const known = names.get(key) ?? {name: signal(''), age: -1};
  if (known.age !== age) {
    known.age = age;
    names.set(key, known);
    void find(id).then(
      (name) => {
        known.name.value = name;
      },
      () => undefined,
    );
  }
  return known.name.value;
}

export const isKnown = (kind: string, id: string) => names.has(keyOf(kind, id));

/** tellName keeps a name that a search has answered. */
export function tellName(kind: string, id: string, name: string): void {
  names.set(keyOf(kind, id), {name: signal(name), age});
}
