// The explorer: may somebody do something, and why; who may; what may somebody do. The whole question is in the URL.
import '../../ui/kit';
import {useEffect, useRef} from 'preact/hooks';
import type {Resource} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {parse} from '../../lib/json';
import {useLoad} from '../../lib/load';
import {go, href, param, setQuery} from '../../lib/router';
import {listApplications, listUsers} from '@idplatform/sdk';
import {Blank, Button, Copy, Tabs} from '../../ui/basics';
import {Pick, type Choice} from '../grants/pick';
import {fill} from '../grants/sentence';
import {findApps, findWho, nameOf, resourcesOf, whoOf, type Who} from '../grants/sources';
import {Answer} from './answer';
import {What, WhoCan} from './lists';
import {t} from './text';

export type ObjectType = 'data' | 'api' | 'ui' | 'app';

export interface Question {
  who?: Who;
  app: string;
  type?: ObjectType;
  code: string;
  action: string;
  context?: Record<string, unknown>;
}

export function question(): Question {
  const on = param('on'),
    at = on.indexOf(':');
  let context: Record<string, unknown> | undefined;
  try {
    context = param('ctx') ? (parse(param('ctx')) as Record<string, unknown>) : undefined;
  } catch {
    context = undefined;
  }
  return {
    who: whoOf(param('who')),
    app: param('app'),
    action: param('do'),
    context,
    type: (on === 'app' ? 'app' : at < 0 ? undefined : on.slice(0, at)) as ObjectType | undefined,
    code: at < 0 ? '' : on.slice(at + 1),
  };
}

export default function Explorer() {
  const mode = ['may', 'who', 'what'].find((m) => m === param('mode')) ?? 'may';
  const q = question();
  const asked =
    mode === 'may'
      ? q.who && q.app && q.type && (q.type === 'app' || q.action)
      : mode === 'who'
        ? q.app && q.type && (q.type === 'app' || q.action)
        : q.who && q.app;
  return (
    <section class="screen scroll" aria-label={t('title')}>
      <div class="page explorer">
        <header class="row spread wrap">
          <h1>{t('title')}</h1>
          {asked && (
            <span class="row muted">
              {t('share')}
              <Copy text={location.href} label={t('copyLink')} />
            </span>
          )}
        </header>
        <Tabs
          label={t('title')}
          current={mode}
          choose={(m) => void setQuery({mode: m === 'may' ? null : m})}
          tabs={[
            {name: 'may', label: t('tabMay')},
            {name: 'who', label: t('tabWho')},
            {name: 'what', label: t('tabWhat')},
          ]}
        />
        <Ask mode={mode} q={q} />
        {!asked ? <Nothing /> : mode === 'may' ? <Answer q={q} /> : mode === 'who' ? <WhoCan q={q} /> : <What q={q} />}
      </div>
    </section>
  );
}

/** Ask is the question, as a sentence with gaps. */
function Ask({mode, q}: {mode: string; q: Question}) {
  const {state} = useLoad(q.app ? `${q.app} ${q.code}` : null, (signal) => resourcesOf(q.app, q.code, signal));
  const found = useRef<Resource[]>([]); // by the last search
  const known = state.value.value ?? [];
  const chosen = known.find((r) => r.type === q.type && r.code === q.code);
  useEffect(() => {
    // the only application, and the only action, need not be chosen
    if (q.app) return;
    const abort = new AbortController();
    void findApps('', abort.signal).then(
      (all) => {
        if (all.length === 1 && !param('app')) void setQuery({app: all[0]!.value}, {replace: true});
      },
      () => undefined,
    );
    return () => abort.abort();
  }, []);
  const findOn = async (words: string, signal: AbortSignal): Promise<Choice[]> => {
    found.current = await resourcesOf(q.app, words, signal);
    const choices = found.current
      .slice(0, 12)
      .map(
        (r): Choice => ({
          value: `${r.type}:${r.code}`,
          label: r.code,
          about: r.name || t.word('type_', r.type),
          icon: 'box',
        }),
      );
    return t('useOfApp').toLowerCase().includes(words.toLowerCase())
      ? [...choices, {value: 'app', label: t('useOfApp'), icon: 'app'}]
      : choices;
  };
  const findDo = async (words: string): Promise<Choice[]> =>
    actionsOf(chosen ? [chosen] : known).filter((a) => a.value.includes(words));
  const gaps = {
    app: (
      <Pick
        big
        label={t('anApp')}
        value={q.app}
        shown={nameOf('application', q.app)}
        search={findApps}
        choose={(v) => void setQuery({app: v, on: null, do: null})}
      />
    ),
    who: (
      <Pick
        big
        label={t('somebody')}
        value={param('who')}
        shown={q.who && nameOf(q.who.type, q.who.id)}
        search={findWho}
        choose={(v) => void setQuery({who: v})}
      />
    ),
    do: (
      <Pick big free label={t('doSomething')} value={q.action} search={findDo} choose={(v) => void setQuery({do: v})} />
    ),
    on: (
      <Pick
        big
        label={t('something')}
        value={param('on')}
        shown={q.type === 'app' ? t('useOfApp') : q.code}
        disabled={!q.app}
        search={findOn}
        choose={(v) => {
          const r = [...found.current, ...known].find((x) => `${x.type}:${x.code}` === v);
          const fits = !r || !r.actions.length || r.actions.some((a) => a.code === q.action);
          void setQuery({
            on: v,
            do: v === 'app' ? null : fits ? q.action : r.actions.length === 1 ? r.actions[0]!.code : null,
          });
        }}
      />
    ),
  };
  const text = t(
    q.type === 'app' && mode !== 'what'
      ? mode === 'who'
        ? 'askWhoApp'
        : 'askMayApp'
      : mode === 'may'
        ? 'askMay'
        : mode === 'who'
          ? 'askWho'
          : 'askWhat',
  );
  return (
    <div class="explorer-ask" role="group" aria-label={t('question')}>
      {fill(text, gaps)}
    </div>
  );
}

function actionsOf(resources: Resource[]): Choice[] {
  const seen = new Map<string, Choice>();
  for (const r of resources)
    for (const a of r.actions) seen.set(a.code, {value: a.code, label: a.code, about: a.description});
  return [...seen.values()];
}

/** example is the question of the sample company, if it is there. */
async function example(signal: AbortSignal): Promise<string | undefined> {
  const [apps, users] = await Promise.all([
    call(listApplications({query: {name: 'Sample books', page_size: 1, count: 'false'}, signal})),
    call(listUsers({query: {keyword: 'li.wei@sample', search_type: 'generic', page_size: 1, count: 'false'}, signal})),
  ]);
  const app = apps.items?.[0],
    user = users.items?.[0];
  return app && user && href('explorer', [], {who: `user:${user.id}`, app: app.id, on: 'data:invoices', do: 'read'});
}

function Nothing() {
  const {state} = useLoad('example', (signal) => example(signal).catch(() => undefined));
  const url = state.value.value;
  const asked = !!url && !!param('example'); // by the first screen
  useEffect(() => {
    if (asked) void go(url, {replace: true});
  }, [asked]);
  return (
    <Blank
      icon="compass"
      title={t('emptyTitle')}
      action={
        url ? (
          <a class="btn primary" href={url}>
            {t('example')}
          </a>
        ) : (
          <Button onClick={() => document.querySelector<HTMLElement>('.explorer-ask input')?.focus()}>
            {t('begin')}
          </Button>
        )
      }
    >
      {t('emptyText')}
    </Blank>
  );
}
