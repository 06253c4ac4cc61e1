// The records that the palette finds: a search for each screen that has some.
import {
  listApplications,
  listAuthMethods,
  listAuthTemplates,
  listAuthUnits,
  listComponents,
  listConnections,
  listCoreObjects,
  listEventSubscriptions,
  listFunctions,
  listJobs,
  listKvBuckets,
  listTreeNodes,
  listUsers,
  type AuthMethod,
  type AuthTemplate,
} from '@idplatform/sdk';
import {call} from '../lib/api';
import {own} from '../lib/own';
import {screens} from '../lib/registry';
import {href} from '../lib/router';
import {may} from '../lib/session';
import {connectionName, providerName} from '../ui/providers';

export interface Hit {
  title: string;
  about?: string;
  href: string;
  entity: string; // the kind of record, and its id
  id: string;
}

type Search = (words: string, signal: AbortSignal) => Promise<Hit[]>;

const most = 6; // hits of a screen
const few = 2; // of each kind, where a screen has three
const count = 'false';

const fits = (words: string, ...of: string[]) => of.join(' ').toLowerCase().includes(words.toLowerCase());

const users: Search = async (words, signal) => {
  const query = {keyword: words, search_type: 'generic', page_size: most, count} as const;
  const page = await call(listUsers({query, signal}));
  return (page.items ?? []).map((u) => ({
    title: u.display_name || u.username,
    about: u.username,
    href: href('users', [], {q: words, open: u.id}),
    entity: 'user',
    id: u.id,
  }));
};

const tree: Search = async (words, signal) => {
  const objects = (await call(listCoreObjects({signal}))) ?? [];
  const trees = objects
    .filter((o) => fits(words, o.name, o.code))
    .slice(0, 3)
    .map((o) => ({title: o.name, about: o.code, href: href('tree', [o.code]), entity: 'core_object', id: o.id}));
  const nodes = objects.slice(0, 5).map(async (o) => {
    const query = {object_code: o.code, name: words, page_size: 3, count} as const;
    const page = await call(listTreeNodes({query, signal}));
    return (page.items ?? [])
      .filter((n) => n.parent_id)
      .map((n) => ({
        title: n.name,
        about: o.name,
        href: href('tree', [o.code], {open: n.id}),
        entity: 'node',
        id: n.id,
      }));
  });
  return [...trees, ...(await Promise.all(nodes)).flat()];
};

const apps: Search = async (words, signal) => {
  const page = await call(listApplications({query: {keyword: words, page_size: most, count}, signal}));
  return (page.items ?? []).map((a) => ({
    title: a.name,
    href: href('apps', [], {q: words, open: a.id}),
    entity: 'application',
    id: a.id,
  }));
};

const jobs: Search = async (words, signal) => {
  const page = await call(listJobs({query: {keyword: words, page_size: most, count}, signal}));
  return (page.items ?? []).map((j) => ({
    title: j.name,
    about: j.code,
    href: href('jobs', [], {q: words, open: j.id}),
    entity: 'job',
    id: j.id,
  }));
};

const functions: Search = async (words, signal) => {
  const query = {keyword: words, page_size: most, page_sort: 'name[asc]', count} as const;
  const page = await call(listFunctions({query, signal}));
  return (page.items ?? []).map((f) => ({
    title: f.name,
    about: f.code,
    href: href('functions', [], {q: words, open: f.id}),
    entity: 'function',
    id: f.id,
  }));
};

const kv: Search = async (words, signal) => {
  const query = {keyword: words, page_size: most, page_sort: 'name[asc]', count} as const;
  const page = await call(listKvBuckets({query, signal}));
  return (page.items ?? []).map((b) => ({
    title: b.name,
    about: b.description,
    href: href('kv', [b.name]),
    entity: 'kv_bucket',
    id: b.id,
  }));
};

const components: Search = async (words, signal) => {
  const found = await call(
    listComponents({query: {keyword: words, page_size: most, page_sort: 'name[asc]', count}, signal}),
  );
  return (found.items ?? []).map((c) => ({
    title: c.name,
    about: c.type,
    href: href('components', [], {q: words, open: c.id}),
    entity: 'component',
    id: c.id,
  }));
};

const connections: Search = async (words, signal) => {
  const query = {keyword: words, page_size: few, page_sort: 'name[asc]', count} as const;
  const [found, methods, templates] = await Promise.all([
    call(listConnections({query: {keyword: words}, signal})),
    call(listAuthMethods({query, signal})),
    call(listAuthTemplates({query, signal})),
  ]);
  const part = (name: string, entity: string, items: (AuthMethod | AuthTemplate)[] | null) =>
    (items ?? []).map((x) => ({
      title: x.name,
      about: x.code,
      href: href('connections', [name], {q: words, open: x.id}),
      entity,
      id: x.id,
    }));
  return [
    ...found
      .slice(0, few)
      .map((c) => ({
        title: connectionName(c),
        about: providerName(c),
        href: href('connections', [], {q: words, open: c.id}),
        entity: 'connection',
        id: c.id,
      })),
    ...part('methods', 'auth_method', methods.items),
    ...part('templates', 'auth_template', templates.items),
  ];
};

const subscriptions: Search = async (words, signal) => {
  const page = await call(listEventSubscriptions({query: {keyword: words, page_size: most, count}, signal}));
  return (page.items ?? []).map((s) => ({
    title: s.name,
    href: href('subscriptions', [], {q: words, open: s.id}),
    entity: 'event_subscription',
    id: s.id,
  }));
};

const groups: Search = async (words, signal) => {
  const query = {identity_type: 'group', keyword: words, page_size: most, count} as const;
  const page = await call(listAuthUnits({query, signal}));
  return page.items.map((u) => ({
    title: u.identity_name || u.identity_id,
    about: u.description,
    href: href('grants', ['units'], {q: words, open: u.id}),
    entity: 'auth_unit',
    id: u.id,
  }));
};

// The search of each screen, and the kinds of records that it finds.
const searches: Record<string, [search: Search, ...kinds: string[]]> = {
  users: [users, 'user'],
  tree: [tree, 'core_object', 'node'],
  apps: [apps, 'application'],
  grants: [groups, 'auth_unit'],
  subscriptions: [subscriptions, 'event_subscription'],
  jobs: [jobs, 'job'],
  functions: [functions, 'function'],
  kv: [kv, 'kv_bucket'],
  components: [components, 'component'],
  connections: [connections, 'connection', 'auth_method', 'auth_template'],
};

/** search finds the first records of a screen. */
export async function search(screen: string, words: string, signal: AbortSignal): Promise<Hit[]> {
  return (await own(searches, screen)?.[0](words, signal))?.slice(0, most) ?? [];
}

const atOnce = 4; // screens that are searched at a time

/**
 * searchAll finds the first records of all screens that the session may see: those of one kind, where one is given and
 * has some. Whoever types on sends no requests for what was typed before.
 */
export async function searchAll(words: string, signal: AbortSignal, kind = ''): Promise<Hit[]> {
  const mine = screens.filter(({scope}) => !scope || may(scope)).map(({name}) => name);
  const within = mine.filter((name) => own(searches, name)?.includes(kind));
  const found = await searchIn(within, words, signal);
  const ofKind = found.filter((hit) => hit.entity === kind);
  if (ofKind.length) return ofKind;
  const others = mine.filter((name) => !within.includes(name));
  return [...found, ...(await searchIn(others, words, signal))];
}

async function searchIn(names: string[], words: string, signal: AbortSignal): Promise<Hit[]> {
  const found: Hit[][] = [];
  const waiting = names.entries(); // those who search take the next one
  const searcher = async () => {
    for (const [i, name] of waiting) {
      if (signal.aborted) return;
      found[i] = await search(name, words, signal).catch(() => []);
    }
  };
  await Promise.all(Array.from({length: atOnce}, searcher));
  return found.flat();
}
