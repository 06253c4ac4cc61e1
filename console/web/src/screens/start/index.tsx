// The first five minutes.
import {useSignal} from '@preact/signals';
import {listApplications, listCoreObjects, listUsers} from '@idplatform/sdk';
import {asProblem, call, type ApiError} from '../../lib/api';
import {changed, useLoad} from '../../lib/load';
import {go, href, place} from '../../lib/router';
import {may, session} from '../../lib/session';
import {screens} from '../../lib/registry';
import {Button, Failed} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {make, remove, treePrefix, type Progress} from './sample';
import {t} from './text';

interface State {
  users?: number;
  trees?: number;
  sample: boolean;
  apps?: number;
}

/** counts tells what is there already; what the session may not read, or is not deployed, is left out. */
async function counts(signal: AbortSignal): Promise<State> {
  const quiet = <T,>(scope: string, p: () => Promise<T>) =>
    may(scope) ? p().catch(() => undefined) : Promise.resolve(undefined);
  const [users, trees, apps] = await Promise.all([
    quiet('users:read', () => call(listUsers({query: {page_size: 1}, signal}))),
    quiet('organization:read', () => call(listCoreObjects({signal}))),
    quiet('applications:read', () => call(listApplications({query: {page_size: 1}, signal}))),
  ]);
  return {
    users: users?.total,
    trees: trees?.length,
    apps: apps?.total,
    sample: trees?.some((o) => o.code.startsWith(treePrefix)) ?? false,
  };
}

export default function Start() {
  const {state, again} = useLoad('start', counts);
  const s = state.value.value;
  // Somebody who signed in by an application has not made it here.
  const own = session.value.client_id && session.value.tenant_id === place.value.tenant ? 1 : 0;
  const way: {name: string; label: string; text: string; count?: string; done?: boolean}[] = [
    {name: 'users', label: t('people'), text: t('peopleText'), count: s?.users ? t('users', {n: s.users}) : ''},
    {name: 'tree', label: t('tree'), text: t('treeText'), count: s?.trees ? t('trees', {n: s.trees}) : ''},
    {
      name: 'apps',
      label: t('apps'),
      text: t('appsText'),
      count: s?.apps ? t('applications', {n: s.apps}) : '',
      done: (s?.apps ?? 0) > own,
    },
    {name: 'grants', label: t('grants'), text: t('grantsText'), done: s?.sample},
    {name: 'explorer', label: t('explorer'), text: t('explorerText')},
    {name: 'events', label: t('events'), text: t('eventsText')},
  ];
  return (
    <section class="screen scroll" aria-label={t('title')}>
      <div class="page start">
        <header>
          <h1>{t('hello')}</h1>
          <p class="lead">{t('lead')}</p>
        </header>
        <div class="two">
          <Sample here={s?.sample ?? false} known={!!s} again={again} />
          <div class="card">
            <h2>
              <Icon name="upload" />
              {t('ownTitle')}
            </h2>
            <p>{t('ownText')}</p>
            <Button scope="users:write" onClick={() => void go(href('users', [], {import: 1}))}>
              {t('import')}
            </Button>
          </div>
        </div>
        <div class="stack">
          <h2 class="caps">{t('steps')}</h2>
          <ol class="start-way">
            {way.map((w, i) => {
              const there = screens.some((x) => x.name === w.name),
                done = w.done ?? !!w.count;
              return (
                <li key={w.name} class={done ? 'done' : ''}>
                  <span class="n num">{done ? <Icon name="check" size={12} /> : i + 1}</span>
                  <span>
                    {there ? <a href={href(w.name)}>{w.label}</a> : <strong title={t('later')}>{w.label}</strong>}{' '}
                    <span class="muted">{w.text}</span>
                  </span>
                  <span class="faint num nowrap">{w.count}</span>
                </li>
              );
            })}
          </ol>
        </div>
      </div>
    </section>
  );
}

function Sample({here, known, again}: {here: boolean; known: boolean; again: () => void}) {
  const at = useSignal<[number, number] | null>(null);
  const error = useSignal<ApiError | undefined>(undefined);
  const run = async (what: (p: Progress) => Promise<void>, done: string) => {
    if (at.value) return;
    at.value = [0, 1];
    error.value = undefined;
    try {
      await what((n, of) => {
        at.value = [n, of];
      });
      toast(done);
    } catch (e) {
      error.value = asProblem(e);
    } finally {
      at.value = null;
      ['users', 'memberships', 'rules'].forEach(changed);
      again();
    }
  };
  return (
    <div class="card">
      <h2>
        <Icon name="users" />
        {t('sampleTitle')}
      </h2>
      <p>{here ? t('sampleHere', {n: 200}) : t('sampleText')}</p>
      {error.value && <Failed error={error.value} again={() => void run(make, t('made'))} />}
      {at.value && <progress value={at.value[0]} max={at.value[1]} aria-label={t('sampleTitle')} />}
      {here ? (
        <div class="row wrap">
          {may('permissions:read') && !at.value && (
            <a class="btn primary" href={href('explorer', [], {example: 1})}>
              {t('question')}
            </a>
          )}
          <Button
            busy={!!at.value}
            scope="users:write"
            onClick={async () => {
              if (await confirm({title: t('removeTitle'), text: t('removeText'), yes: t('remove'), danger: true}))
                void run(remove, t('removed'));
            }}
          >
            {at.value ? t('removing') : t('remove')}
          </Button>
        </div>
      ) : (
        <Button
          kind="primary"
          busy={!!at.value}
          disabled={!known}
          scope="users:write"
          onClick={() => void run(make, t('made'))}
        >
          {at.value ? t('making') : t('make')}
        </Button>
      )}
    </div>
  );
}
