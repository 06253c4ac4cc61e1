// Jobs: what the platform does at set times.
import '../../ui/kit';
import {signal, useSignal} from '@preact/signals';
import {deleteJobs, listFunctions, listJobs, resumeJobs, suspendJobs, type Job} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {ago, dateTime, number} from '../../lib/format';
import {changed} from '../../lib/load';
import {own} from '../../lib/own';
import {param, setQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Button, Status, Tag, problemTitle, type Tone} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {List, type Column, type Query, modifiedColumn, createdColumn} from '../../ui/list';
import {undone} from '../../ui/undo';
import {Create} from './create';
import {JobPanel} from './panel';
import {t} from './text';
import {scheduleWords} from './words';

const tones: Record<NonNullable<Job['state']>, Tone> = {scheduled: 'good', suspended: 'warn', finished: 'off'};

export function JobState({job}: {job: Job}) {
  if (job.status === '0') return <Status tone="off">{t('disabled')}</Status>;
  const state = job.state ?? 'scheduled';
  return <Status tone={own(tones, state) ?? 'off'}>{t.word('', state)}</Status>;
}

/** The names of functions by id: a job has only the id of its own. */
const functionNames = signal<Record<string, string>>({});

function targetName({target: {url, subject, function_id: id = ''}}: Job): string {
  return url ?? subject ?? functionNames.value[id] ?? id;
}

async function nameFunctions(jobs: Job[], signal: AbortSignal): Promise<void> {
  const unknown = jobs.some(({target}) => target.function_id && !functionNames.value[target.function_id]);
  if (!unknown || !may('functions:read')) return;
  const {items} = await call(listFunctions({query: {page_size: 200, count: 'false'}, signal}));
  functionNames.value = Object.fromEntries((items ?? []).map((f) => [f.id, f.name]));
}

async function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  const {state, target} = query.filters;
  const page = await call(
    listJobs({
      signal,
      query: {
        keyword: query.q || undefined,
        state: (state || undefined) as Job['state'],
        target_type: (target || undefined) as Job['target']['type'] | undefined,
        page_sort: query.sort || undefined,
        page_size: 100,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
  await nameFunctions(page.items ?? [], signal).catch(() => {}); // the ids are shown then
  return page;
}

function columns(): Column<Job>[] {
  return [
    {key: 'name', header: t('name'), sort: 'name', cell: (j) => <span title={j.description}>{j.name}</span>},
    {key: 'state', header: t('state'), width: '136px', cell: (j) => <JobState job={j} />},
    {
      key: 'schedule',
      header: t('schedule'),
      priority: 2,
      cell: (j) => (
        <span class="muted" title={j.schedule.cron}>
          {scheduleWords(j.schedule)}
        </span>
      ),
    },
    {
      key: 'next',
      header: t('next'),
      sort: 'next_fire_time',
      priority: 2,
      width: '128px',
      cell: (j) => (
        <span class="num" title={dateTime(j.next_fire_time)}>
          {j.next_fire_time ? ago(j.next_fire_time) : <span class="faint">—</span>}
        </span>
      ),
    },
    {
      key: 'target',
      header: t('target'),
      priority: 3,
      cell: (j) => (
        <span class="row">
          <Tag>{t(j.target.type)}</Tag>
          <span class="clip muted">{targetName(j)}</span>
        </span>
      ),
    },
    {
      key: 'fired',
      header: t('fired'),
      priority: 3,
      width: '84px',
      cell: (j) => <span class="num muted">{number(j.fired ?? 0)}</span>,
    },
    {
      key: 'code',
      header: t('code'),
      sort: 'code',
      priority: 3,
      optional: true,
      cell: (j) => <span class="mono muted">{j.code}</span>,
    },
    modifiedColumn({sort: 'time_modified', priority: 3, optional: true}),
    createdColumn({sort: 'time_created'}),
  ];
}

export default function Jobs() {
  const open = param('open');
  const create = (
    <Button kind="primary" icon="plus" scope="jobs:write" onClick={() => void setQuery({create: 1})}>
      {t('create')}
    </Button>
  );
  return (
    <>
      <List<Job>
        name="jobs"
        title={t('jobs')}
        kind="jobs"
        rowId={(j) => j.id}
        rowName={(j) => j.name}
        columns={columns()}
        load={load}
        search={t('search')}
        sort="name[asc]"
        filters={[
          {
            param: 'state',
            label: t('state'),
            options: (['scheduled', 'suspended', 'finished'] as const).map((value) => ({value, label: t(value)})),
          },
          {
            param: 'target',
            label: t('target'),
            options: (['webhook', 'nats', 'function'] as const).map((value) => ({value, label: t(value)})),
          },
        ]}
        empty={{icon: 'clock', title: t('emptyTitle'), text: t('emptyText'), action: create}}
        actions={create}
        bulk={(selected, clear) => <Bulk selected={selected} clear={clear} />}
      />
      {open && <JobPanel key={open} id={open} />}
      {param('create') && (
        <Create close={(made) => void setQuery({create: null, ...(made && {open: made.id, tab: null})})} />
      )}
    </>
  );
}

/** Bulk changes the selected jobs in one batch, all or none; each is tried without effect before it is asked about. */
function Bulk({selected, clear}: {selected: Job[]; clear: () => void}) {
  const busy = useSignal('');
  const ids = selected.map((j) => j.id),
    n = ids.length,
    names = selected.map((j) => j.name);
  const text = names.slice(0, 8).join(t('comma')) + (n > 8 ? ` … (+${n - 8})` : '');
  const actions = {suspend: suspendJobs, resume: resumeJobs, delete: deleteJobs};
  const run = async (what: keyof typeof actions) => {
    const batch = (dry_run?: 'true') =>
      call(actions[what]({body: {ids}, query: {dry_run}}) as Promise<{data: unknown}>);
    const danger = what === 'delete';
    busy.value = what;
    try {
      await batch('true');
      busy.value = '';
      const yes = await confirm({
        title: t(`${what}Many`, {n}),
        text: danger ? [text, <p>{t('deleteText')}</p>] : text,
        yes: t(danger ? 'deleteDo' : what),
        danger,
        typed: danger ? String(n) : undefined,
        action: () => batch(),
      });
      if (!yes) return;
      busy.value = what;
      await batch();
      toast(t(`${what}ManyDone`, {n}), danger ? undefined : () => undo(what, selected));
      clear();
    } catch (e) {
      const problem = asProblem(e);
      toast(`${problemTitle(problem)}: ${problem.message}`);
    } finally {
      busy.value = '';
      changed('jobs');
    }
  };
  const undo = async (what: keyof typeof actions, jobs: Job[]) => {
    const turned = jobs.filter((j) => (j.state === 'suspended') !== (what === 'suspend')).map((j) => j.id);
    const back = what === 'suspend' ? resumeJobs : suspendJobs;
    if (turned.length) await undone(() => call(back({body: {ids: turned}})));
    changed('jobs');
  };
  const button = (what: keyof typeof actions, icon: 'pause' | 'play' | 'trash') => (
    <Button
      small
      icon={icon}
      kind={what === 'delete' ? 'danger' : undefined}
      scope="jobs:write"
      busy={busy.value === what}
      onClick={() => void run(what)}
    >
      {t(what === 'delete' ? 'deleteDo' : what)}
    </Button>
  );
  return (
    <>
      {button('suspend', 'pause')}
      {button('resume', 'play')}
      {button('delete', 'trash')}
    </>
  );
}
