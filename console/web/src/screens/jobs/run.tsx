// One run of a job, or a part of it: the tree of its parts, its payload, result and log; and its end by hand.
import type {ComponentChildren} from 'preact';
import {cancelSubJob, getSubJob, listSubJobLogs, listSubJobs, triggerJob, type Job, type SubJob} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {usePoll} from '../../lib/poll';
import {hrefQuery, setQuery} from '../../lib/router';
import {Button, Failed, Id, JsonView, Late} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {Facts} from '../../ui/record';
import {attempt, carryOut} from '../../ui/undo';
import {linesPerPage, LogView} from './logs';
import {Progress, RunState, isOver, runName, runParam, runTime} from './runs';
import {mayRun} from './trigger';
import {t} from './text';

interface Opened {
  sub: SubJob;
  root: SubJob;
  parts: SubJob[]; // of the run, in the order in which they were split off
}

export function RunView({job, id, again: reloadJob}: {job: Job; id: string; again: () => void}) {
  const {state, again} = useLoad(id, (signal) => load(job.id, id, signal));
  const {value, error, busy} = state.value;
  const live = value !== undefined && !isOver(value.root);
  usePoll(live ? 2000 : 0, again);
  const back = (
    <p>
      <a class="row" href={hrefQuery({run: null})}>
        <Icon name="left" />
        {t('allRuns')}
      </a>
    </p>
  );
  return (
    <>
      {back}
      {error && <Failed error={error} again={again} />}
      <Late busy={busy && !value} lines={8}>
        {value && (
          <Loaded
            key={value.sub.id}
            job={job}
            opened={value}
            again={() => {
              again();
              reloadJob();
              changed('jobs');
            }}
          />
        )}
      </Late>
    </>
  );
}

async function load(job: string, id: string, signal: AbortSignal): Promise<Opened> {
  const sub = await call(getSubJob({path: {id: job, sid: id}, signal}));
  const root = sub.parent_id ? await call(getSubJob({path: {id: job, sid: sub.root_id}, signal})) : sub;
  return {sub, root, parts: await loadParts(job, root, signal)};
}

/**
 * loadParts finds the parts of a run at any depth. They were created after it, so that the list of all sub-jobs from
 * the newest on has them before the run itself.
 */
async function loadParts(id: string, root: SubJob, signal: AbortSignal): Promise<SubJob[]> {
  const first = await call(
    listSubJobs({path: {id}, query: {parent_id: root.id, page_size: 1, count: 'false'}, signal}),
  );
  if (!first.items?.length) return [];
  const parts: SubJob[] = [];
  let token: string | undefined;
  for (;;) {
    const page = await call(
      listSubJobs({
        path: {id},
        query: {page_size: 200, page_sort: 'time_created[desc]', page_token: token, count: 'false'},
        signal,
      }),
    );
    const items = page.items ?? [];
    parts.push(...items.filter((s) => s.root_id === root.id && s.id !== root.id));
    token = page.next_page_token;
    if (!token || items.some((s) => s.time_created < root.time_created)) return parts.reverse();
  }
}

function Loaded({job, opened: {sub, root, parts}, again}: {job: Job; opened: Opened; again: () => void}) {
  const name = runName(sub),
    over = isOver(sub);
  const tries = (job.retry?.max ?? 0) + 1;
  return (
    <>
      <header class="job-run-head">
        <h3 class="clip">{name}</h3>
        <RunState state={sub.state} />
        <span class="grow" />
        {!over && (
          <Button small kind="danger" scope="jobs:write" onClick={() => void cancel(job, sub, parts, again)}>
            {t('cancelRun')}
          </Button>
        )}
        {over && !sub.parent_id && <RunAgain job={job} sub={sub} again={again} />}
      </header>
      <Progress sub={sub} />
      {sub.error && (
        <div class={sub.state === 'succeeded' || !over ? 'note warn' : 'note bad'}>
          <Icon name="alert" />
          <div class="grow">
            <div class="title">{t(over && sub.state !== 'succeeded' ? 'failedWith' : 'attemptFailed')}</div>
            <div lang="en" class="log-text">
              {sub.error}
            </div>
          </div>
        </div>
      )}
      <Facts facts={facts(sub, tries)} />
      {parts.length > 0 && (
        <section class="section">
          <h3>{t('partsOf', {n: parts.length})}</h3>
          <ul class="job-tree">
            <Branch job={job} sub={root} parts={parts} current={sub.id} />
          </ul>
        </section>
      )}
      <section class="section">
        <h3>{t('logs')}</h3>
        <LogView
          live={!over}
          load={(page_token, signal) =>
            call(
              listSubJobLogs({
                path: {id: job.id, sid: sub.id},
                query: {page_size: linesPerPage, page_sort: 'time[desc]', page_token, count: 'false'},
                signal,
              }),
            )
          }
        />
      </section>
      {value(t('result'), sub.result)}
      {value(t('payload'), sub.payload)}
    </>
  );
}

function value(title: string, v: unknown): ComponentChildren {
  if (v === null || v === undefined) return null;
  return (
    <section class="section">
      <h3>{title}</h3>
      <JsonView value={v} />
    </section>
  );
}

function facts(s: SubJob, tries: number): [string, ComponentChildren][] {
  const time = (at: string | null) => at && <span title={ago(at)}>{dateTime(at)}</span>;
  return [
    [t('cause'), s.parent_id ? t('part') : s.time_scheduled ? t('bySchedule') : t('byHand')],
    [t('scheduledFor'), time(s.time_scheduled)],
    [t('started'), time(s.time_started)],
    [t('ended'), time(s.time_finished)],
    [t(isOver(s) ? 'took' : 'runningFor'), <span class="num">{runTime(s)}</span>],
    [t('attempts'), s.parent_id ? '' : <span class="num">{t('attemptOf', {n: s.attempt, max: tries})}</span>],
    [t('id'), <Id>{s.id}</Id>],
  ];
}

function Branch({job, sub, parts, current}: {job: Job; sub: SubJob; parts: SubJob[]; current: string}) {
  const below = parts.filter((p) => p.parent_id === sub.id);
  return (
    <li>
      <a
        href={hrefQuery({run: runParam(job, sub.id)})}
        aria-current={sub.id === current ? 'true' : undefined}
        class="job-branch"
      >
        <RunState state={sub.state} />
        <span class="clip grow">{runName(sub)}</span>
        <Progress sub={sub} />
        <span class="faint num nowrap">{isOver(sub) ? runTime(sub) : sub.progress ? `${sub.progress} %` : ''}</span>
      </a>
      {below.length > 0 && (
        <ul>
          {below.map((p) => (
            <Branch key={p.id} job={job} sub={p} parts={parts} current={current} />
          ))}
        </ul>
      )}
    </li>
  );
}

async function cancel(job: Job, sub: SubJob, parts: SubJob[], again: () => void): Promise<void> {
  const name = runName(sub);
  const open = parts.filter((p) => !isOver(p) && p.id !== sub.id).length;
  const send = () => call(cancelSubJob({path: {id: job.id, sid: sub.id}}));
  await carryOut({
    ask: {
      title: t('cancelTitle', {name}),
      text: (
        <>
          <p>{t('cancelText')}</p>
          {open > 0 && !sub.parent_id && <p>{t('cancelParts', {n: open})}</p>}
        </>
      ),
      yes: t('cancelRun'),
      no: t('letRun'),
      danger: true,
      action: send,
    },
    send,
    said: t('cancelDone', {name}),
    after: again,
  });
}

/** RunAgain starts another run with the payload of this one. */
function RunAgain({job, sub, again}: {job: Job; sub: SubJob; again: () => void}) {
  const act = () =>
    attempt(async () => {
      const body = sub.payload === null ? {} : {payload: sub.payload};
      const made = await call(triggerJob({path: {id: job.id}, body}));
      toast(t('triggered', {n: made.number}));
      again();
      await setQuery({run: runParam(job, made.id)});
    });
  return (
    <Button
      small
      icon="refresh"
      scope={mayRun(job, sub.payload !== null)}
      disabled={job.status === '0'}
      onClick={() => void act()}
    >
      {t('runAgain')}
    </Button>
  );
}
