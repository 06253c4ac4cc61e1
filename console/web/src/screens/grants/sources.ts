// What fields find: people, nodes, groups, applications, resources and their actions; and the names of what is chosen.
import {
  listApplications,
  listAuthUnits,
  listCoreObjects,
  listResources,
  listResourceSets,
  listTreeNodes,
  listUsers,
  type AuthUnit,
  type Resource,
} from '@idplatform/sdk';
import {signal, type Signal} from '@preact/signals';
import {call} from '../../lib/api';
import {isBatched, isKnown, nameOf as recordName, tellName, together, type Find} from '../../lib/names';
import {place} from '../../lib/router';
import {may} from '../../lib/session';
import type {IconName} from '../../ui/icon';
import type {Choice} from './pick';
import {t} from './text';

export type IdentityType = AuthUnit['identity_type'];

export const identityIcon: Record<IdentityType, IconName> = {
  user: 'member',
  node: 'tree',
  core_object: 'tree',
  application: 'app',
  group: 'users',
  everyone: 'globe',
};

export interface Who {
  type: IdentityType;
  id: string;
}

/** An identity in the URL: user:1048577. */
export function whoOf(text: string): Who | undefined {
  const at = text.indexOf(':');
  return at < 0 ? undefined : {type: text.slice(0, at) as IdentityType, id: text.slice(at + 1)};
}

export function whoText(w: {identity_type: string; identity_id: string}): string {
  return `${w.identity_type}:${w.identity_id}`;
}

const findGroup: Find = (id) =>
  call(listAuthUnits({query: {identity_type: 'group', identity_id: id}})).then(
    (page) => page.items[0]?.identity_name ?? '',
  );

/**
 * nameOf is the name of an identity, or of another record; until it is there, or if it cannot be read, the one that is
 * given with it, or its id. Of kinds that would be asked for one by one, the given name is enough.
 */
export function nameOf(kind: string, id: string, given = ''): string {
  if (kind === 'everyone') return t('everyone');
  if (given && !isBatched(kind) && !isKnown(kind, id)) return given;
  return recordName(kind, id, kind === 'group' ? findGroup : undefined) || given || id;
}

const findUnit = together('permissions:read', (ids) =>
  call(listAuthUnits({query: {ids, page_size: 200, count: 'false'}})).then((page) => page.items),
);
const units = new Map<string, Signal<AuthUnit | undefined>>();

export function unitOf(id: string): AuthUnit | undefined {
  const key = `${place.value.tenant} ${id}`;
  let unit = units.get(key);
  if (!unit) {
    const fresh = (unit = signal<AuthUnit | undefined>(undefined));
    units.set(key, fresh);
    void findUnit(id).then((u) => {
      fresh.value = u;
    });
  }
  return unit.value;
}

const contains = (text: string, words: string) => text.toLowerCase().includes(words.trim().toLowerCase());

export async function findUsers(words: string, signal: AbortSignal): Promise<Choice[]> {
  const page = await call(
    listUsers({
      query: {keyword: words || undefined, search_type: words ? 'generic' : undefined, page_size: 8, count: 'false'},
      signal,
    }),
  );
  return (page.items ?? []).map((u) => {
    tellName('user', u.id, u.display_name || u.username);
    return {value: `user:${u.id}`, label: u.display_name || u.username, about: u.username, icon: 'member'};
  });
}

export async function findNodes(words: string, signal: AbortSignal): Promise<Choice[]> {
  const trees = ((await call(listCoreObjects({signal}))) ?? []).slice(0, 5);
  const pages = await Promise.all(
    trees.map((o) =>
      call(
        listTreeNodes({query: {object_code: o.code, name: words || undefined, page_size: 6, count: 'false'}, signal}),
      ),
    ),
  );
  return pages.flatMap((page, i) =>
    (page.items ?? []).map((n): Choice => {
      tellName('node', n.id, n.name);
      return {value: `node:${n.id}`, label: n.name, about: trees[i]!.name, icon: 'tree'};
    }),
  );
}

async function findTrees(words: string, signal: AbortSignal): Promise<Choice[]> {
  return ((await call(listCoreObjects({signal}))) ?? [])
    .filter((o) => contains(o.name, words))
    .slice(0, 4)
    .map((o) => {
      tellName('core_object', o.id, o.name);
      return {value: `core_object:${o.id}`, label: o.name, about: t('core_object'), icon: 'tree'};
    });
}

async function findGroups(words: string, signal: AbortSignal): Promise<Choice[]> {
  const query = {identity_type: 'group' as const, keyword: words || undefined, page_size: 6, count: 'false' as const};
  return ((await call(listAuthUnits({query, signal}))).items ?? []).map((u) => ({
    value: whoText(u),
    label: u.identity_name || u.identity_id,
    about: t('group'),
    icon: 'users',
  }));
}

/** findWho finds identities of every kind; what the session may not read is left out. */
export async function findWho(words: string, signal: AbortSignal): Promise<Choice[]> {
  const quiet = (scope: string, find: () => Promise<Choice[]>) =>
    may(scope) ? find().catch(() => []) : Promise.resolve([]);
  const found = await Promise.all([
    quiet('users:read', () => findUsers(words, signal)),
    quiet('organization:read', () => findNodes(words, signal)),
    quiet('organization:read', () => findTrees(words, signal)),
    quiet('permissions:read', () => findGroups(words, signal)),
    quiet('applications:read', () =>
      findApps(words, signal).then((all) =>
        all.slice(0, 4).map((c) => ({...c, value: `application:${c.value}`, about: t('application')})),
      ),
    ),
  ]);
  const everyone: Choice[] = contains(t('everyone'), words)
    ? [{value: 'everyone:*', label: t('everyone'), icon: 'globe'}]
    : [];
  return [...found.flat(), ...everyone];
}

export async function findApps(words: string, signal?: AbortSignal): Promise<Choice[]> {
  const page = await call(
    listApplications({
      query: {keyword: words || undefined, page_size: 12, count: 'false', page_sort: 'time_created[desc]'},
      signal,
    }),
  );
  return (page.items ?? []).map((a) => {
    tellName('application', a.id, a.name);
    return {value: a.id, label: a.name, icon: 'app' as const};
  });
}

/** resourcesOf finds the first resources of an application whose code or name has the words. */
export async function resourcesOf(app: string, words: string, signal?: AbortSignal): Promise<Resource[]> {
  if (!app) return [];
  const query = {application_id: app, keyword: words || undefined, include_global: 'true' as const, page_size: 24};
  return (await call(listResources({query: {...query, count: 'false'}, signal}))).items ?? [];
}

export async function findSets(app: string, words: string, signal: AbortSignal): Promise<Choice[]> {
  if (!app) return [];
  const query = {application_id: app, keyword: words || undefined, include_global: 'true' as const, page_size: 12};
  const found = (await call(listResourceSets({query: {...query, count: 'false'}, signal}))).items ?? [];
  return found.map((s) => ({value: s.code, label: s.name || s.code, about: s.code, icon: 'box'}));
}
