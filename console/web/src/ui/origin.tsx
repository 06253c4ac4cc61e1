// What entries and events tell: who did something, when, to which record, and where that is shown.
import {nameOf as recordName} from '../lib/names';
import {own} from '../lib/own';
import {href, place} from '../lib/router';
import {session} from '../lib/session';
import {lang, locale, texts} from '../lib/i18n';
import {screens} from '../lib/registry';
import {Copy} from './basics';

const t = texts({
  you: ['you', '您'],
  system: ['the platform', '平台'],
  nobody: ['not signed in', '未登录'],
  client: ['application {id}', '应用 {id}'],
  scim_connection: ['SCIM connection {id}', 'SCIM 连接 {id}'],
  elsewhere: ['{id} of {host}', '{id}（{host}）'],
  user: ['user {id}', '用户 {id}'],
  console: ['Console: {screen}', '控制台：{screen}'],
});

/** userOf is the id of the user who made a change, with a token or at the platform's own sign-in; '' if it was none. */
export function userOf(actor: string): string {
  const [issuer, id] = actor.split('#');
  if (id && issuer!.endsWith(`/sign-in/${place.value.tenant}`)) return id;
  return /^user:(.+)$/.exec(actor)?.[1] ?? '';
}

/** actorOf is the kind and id of the record that an actor is; '' of one that is none here. */
export function actorOf(actor: string): [kind: string, id: string] {
  const user = userOf(actor);
  if (user) return ['user', user];
  const [, kind, id] = /^(client|scim):(.+)$/.exec(actor) ?? [];
  return id ? [kind === 'scim' ? 'scim_connection' : 'client', id] : ['', ''];
}

/** actorWords says who an actor without a name is, and leaves out the address of an issuer. */
export function actorWords(actor: string): string {
  if (actor === 'system' || actor === '') return t(actor ? 'system' : 'nobody');
  const [kind, id] = actorOf(actor);
  if (kind) return t(kind as 'user' | 'client' | 'scim_connection', {id});
  const [issuer = '', subject] = actor.split('#');
  const host = URL.canParse(issuer) && new URL(issuer).host;
  return subject && host ? t('elsewhere', {id: subject, host}) : actor;
}

/**
 * Actor is who made a change, by name: a user, an application, an issuer's subject, the platform. In a row it is no
 * stop of the Tab key: the panel of the row has the same link.
 */
export function Actor({actor, copy, inRow}: {actor: string; copy?: boolean; inRow?: boolean}) {
  const mine = !!session.value.actor && actor === session.value.actor;
  if (actor === 'system' || actor === '') return <span class="faint">{actorWords(actor)}</span>;
  if (mine && !copy)
    return (
      <span class="tag" title={actor}>
        {t('you')}
      </span>
    );
  const [kind, id] = actorOf(actor);
  const name = recordName(kind, id) || actorWords(actor);
  const link = kind === 'client' ? href('apps', [], {q: id}) : recordHref(kind, id);
  return (
    <span class="row" title={actor}>
      {link ? (
        <a class="clip" href={link} tabIndex={inRow ? -1 : undefined}>
          {name}
        </a>
      ) : (
        <span class="clip">{name}</span>
      )}
      {mine && <span class="tag">{t('you')}</span>}
      {copy && <Copy text={actor} />}
    </span>
  );
}

/** RecordName is a record by its name, which leads to where it is shown; by its id if nobody knows a name. */
export function RecordName({kind, id, name}: {kind: string; id: string; name?: string}) {
  const known = recordName(kind, id) || name;
  const link = recordHref(kind, id);
  const shown = known ? <span class="clip">{known}</span> : <span class="mono num clip">{id}</span>;
  return link ? (
    <a class="clip" href={link}>
      {shown}
    </a>
  ) : (
    shown
  );
}

// The segments of the path where a record is shown.
const shownBy: Record<string, string[]> = {
  user: ['users'],
  application: ['apps'],
  event_subscription: ['subscriptions'],
  job: ['jobs'],
  connection: ['connections'],
  auth_method: ['connections', 'methods'],
  auth_template: ['connections', 'templates'],
  function: ['functions'],
  component: ['components'],
};

/** recordHref is where a record is shown; '' if no screen shows it. */
export function recordHref(entity: string, id: string): string {
  const [name, ...rest] = own(shownBy, entity) ?? [];
  return id && name && screens.some((s) => s.name === name) ? href(name, rest, {open: id}) : '';
}

/** nameOf is what people call the record of an event. */
export function nameOf(record: unknown): string {
  const r = (record ?? {}) as Record<string, unknown>;
  for (const key of ['display_name', 'name', 'username', 'code', 'path', 'identity_name', 'operation', 'key']) {
    if (typeof r[key] === 'string' && r[key]) return r[key];
  }
  return '';
}

/** originWords names the screen of the console that a change came from; another origin is as it was sent. */
export function originWords(origin: string): string {
  const name = /^console\/(.+)$/.exec(origin)?.[1];
  const screen = screens.find((s) => s.name === name);
  return screen ? t('console', {screen: screen.title[lang.value === 'zh' ? 'zh' : 'en']}) : origin;
}

/** clock is a time of day with seconds; another day is named. */
export function clock(text: string): string {
  const time = new Date(text);
  const today = time.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale(), {
    ...(!today && {month: 'short', day: 'numeric'}),
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false,
  }).format(time);
}
