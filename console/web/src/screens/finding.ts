// Filters by a record and by who made a change: both are found by name, and an id that is pasted is understood.
import {listApplications, listUsers} from '@idplatform/sdk';
import {call} from '../lib/api';
import {texts} from '../lib/i18n';
import {findName, nameOf, tellName} from '../lib/names';
import {place} from '../lib/router';
import {may} from '../lib/session';
import {issuingOf} from '../ui/issuing';
import {kindWord} from '../ui/kinds';
import {fitting, type Filter, type FilterOption} from '../ui/list';
import {actorOf, actorWords, userOf} from '../ui/origin';
import {searchAll} from './search';

const t = texts({record: ['Record', '记录'], actor: ['By', '操作者'], platform: ['the platform', '平台']});

const isID = (text: string) => /^\d{1,16}$/.test(text);

/** An option's value is the kind of the record and its id; of an id that was pasted, the kind may be open. */
const split = (value: string): [entity: string, id: string] => {
  const at = value.indexOf(':');
  return at < 0 ? ['', value] : [value.slice(0, at), value.slice(at + 1)];
};

function option(entity: string, id: string, name: string): FilterOption {
  tellName(entity, id, name);
  return {value: `${entity}:${id}`, label: name, about: kindWord(entity)};
}

/** Ids are unique in a service alone: an id that was pasted may name several records. */
async function byId(id: string, ...kinds: string[]): Promise<FilterOption[]> {
  const names = await Promise.all(kinds.map((kind) => findName(kind, id)));
  return kinds.flatMap((kind, i) => (names[i] ? [option(kind, id, names[i]!)] : []));
}

/** findRecords finds records by an id, else by their names: those of one kind first, if there are some. */
async function findRecords(words: string, signal: AbortSignal, kind: string): Promise<FilterOption[]> {
  if (isID(words)) {
    let known = kind ? await byId(words, kind) : [];
    if (!known.length && !signal.aborted)
      known = await byId(words, 'user', 'application', 'node', 'auth_unit', 'resource');
    if (known.length) return known;
  }
  const hits = await searchAll(words, signal, kind);
  return hits.map((h) => option(h.entity, h.id, h.title));
}

/** recordFilter chooses a record of any kind. While there is none, its kind is one that a person has chosen. */
export function recordFilter(is: {entity: string; id: string}, choose: (entity: string, id: string) => void): Filter {
  return {
    param: 'record',
    label: t('record'),
    options: [],
    find: (words, signal) => findRecords(words, signal, is.id ? '' : is.entity),
    typed: isID,
    value: is.id && (is.entity ? `${is.entity}:${is.id}` : is.id),
    shown: (value) => nameOf(...split(value)) || is.id,
    choose: (value) => choose(...split(value)),
  };
}

const issuers = new Map<string, Promise<string>>(); // by tenant

/** Whoever signs in at the platform is told as a subject of the tenant's issuer. */
async function personActor(id: string): Promise<string> {
  const {tenant} = place.value;
  const issuer =
    issuers.get(tenant) ??
    issuingOf(tenant).then(
      (found) => found?.issuer ?? '',
      () => '',
    );
  issuers.set(tenant, issuer);
  const url = await issuer;
  return url ? `${url}#${id}` : `user:${id}`;
}

/** spellings are all actors that one person is in entries; an actor that is no person of the tenant has one. */
export async function spellings(actor: string): Promise<string[]> {
  const user = userOf(actor);
  if (!user) return [actor];
  return [...new Set([actor, actor.includes('#') ? `user:${user}` : await personActor(user)])];
}

async function findActors(words: string, signal: AbortSignal): Promise<FilterOption[]> {
  const few = {page_size: 6, count: 'false'} as const;
  const people = async () => {
    const query = isID(words) ? {ids: words, ...few} : {keyword: words, search_type: 'generic' as const, ...few};
    const {items} = await call(listUsers({query, signal}));
    return Promise.all(
      (items ?? []).map(async (u) => {
        const name = u.display_name || u.username;
        tellName('user', u.id, name);
        return {value: await personActor(u.id), label: name, about: u.username};
      }),
    );
  };
  const programs = async () => {
    const {items} = await call(listApplications({query: {keyword: words, ...few}, signal}));
    return (items ?? []).map((a) => {
      tellName('client', a.client_id, a.name);
      return {value: `client:${a.client_id}`, label: a.name, about: kindWord('application')};
    });
  };
  const found = await Promise.all([
    may('users:read') ? people().catch(() => []) : [],
    may('applications:read') ? programs().catch(() => []) : [],
  ]);
  return [...found.flat(), ...fitting(actors(), words)];
}

const actors = (): FilterOption[] => [{value: 'system', label: t('platform')}];

/** actorFilter chooses who made a change: a person, an application, the platform. */
export function actorFilter(): Filter {
  return {
    param: 'actor',
    label: t('actor'),
    options: actors(),
    find: findActors,
    typed: (words) => /^[\w-]+:|#/.test(words),
    shown: (actor) => nameOf(...actorOf(actor)) || actorWords(actor),
  };
}
