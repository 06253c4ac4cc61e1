// The runs of a job, newest first; one of them with its parts, its result and its log.
import {useSignal} from '@preact/signals';
import {listJobLogs, listSubJobs, type Job, type SubJob} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago, dateTime, took} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {own} from '../../lib/own';
import {usePoll} from '../../lib/poll';
import {hrefQuery, param, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Late, Status, type Tone} from '../../ui/basics';
import {linesPerPage, LogView} from './logs';
import {RunView} from './run';
import {t} from './text';

export type State = SubJob['state'];

const tones: Record<State, Tone> = {
  pending: 'off',
  running: 'warn',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'off',
  timed_out: 'bad',
};
export const states = Object.keys(tones) as State[];

export function RunState({state}: {state: State}) {
  return <Status tone={own(tones, state) ?? 'off'}>{t.word('', state)}</Status>;
}

export const isOver = (s: SubJob) => s.time_finished !== null;

/** runName is "Run 12"; a part has a name of its own. */
export const runName = (s: SubJob) => (s.parent_id ? s.name : t('runNumber', {n: s.number}));

/** The run that is open: <job>-<sub-job>, so that it ends when another job is opened. */
export const runParam = (job: Job, id: string) => `${job.id}-${id}`;

export function openRun(job: Job): string {
  const [of, id] = param('run').split('-');
  return of === job.id ? (id ?? '') : '';
}

/** runTime is how long a run took, or has been running. */
export function runTime(s: SubJob): string {
  if (!s.time_started) return '';
  return took((s.time_finished ? Date.parse(s.time_finished) : Date.now()) - Date.parse(s.time_started));
}

export function Progress({sub}: {sub: SubJob}) {
  if (isOver(sub) || (!sub.progress && sub.state !== 'running')) return null;
  return <progress class="job-progress" max={100} value={sub.progress || undefined} aria-label={t('progress')} />;
}

/** Runs shows the list, or the run of the URL. */
export function Runs({job, again}: {job: Job; again: () => void}) {
  const open = openRun(job);
  return open ? <RunView key={open} job={job} id={open} again={again} /> : <RunList job={job} />;
}

function RunList({job}: {job: Job}) {
  const state = (param('runs') || undefined) as State | undefined;
  const pages = useSignal(1);
  const {state: loading, again} = useLoad(`${job.id} ${state} ${pages.value} ${job.last_sub_job_id}`, (signal) =>
    loadRuns(job.id, state, pages.value, signal),
  );
  const {value, error, busy} = loading.value;
  const runs = value?.runs ?? [];
  const live = runs.some((r) => !isOver(r));
  usePoll(live ? 2000 : 10_000, again);
  return (
    <>
      <div class="chips" role="group" aria-label={t('state')}>
        {[undefined, ...states].map((x) => (
          <button
            key={x ?? ''}
            type="button"
            class={x === state ? 'chip on' : 'chip'}
            aria-pressed={x === state}
            onClick={() => void setQuery({runs: x}, {replace: true, force: true})}
          >
            {x ? t(x) : t('allStates')}
          </button>
        ))}
      </div>
      {error && <Failed error={error} again={again} />}
      <Late busy={busy && !value} lines={8}>
        {runs.length > 0 ? (
          <ol class="job-runs">
            {runs.map((r) => (
              <RunRow key={r.id} job={job} run={r} parts={value?.parts.get(r.id) ?? 0} />
            ))}
          </ol>
        ) : (
          value && (
            <Blank icon={state ? 'search' : 'clock'} title={t(state ? 'noneWith' : 'noRuns')}>
              {!state && t('noRunsText')}
            </Blank>
          )
        )}
        {value?.more && (
          <div class="row">
            <Button
              busy={busy}
              onClick={() => {
                pages.value++;
              }}
            >
              {t('more')}
            </Button>
          </div>
        )}
      </Late>
    </>
  );
}

/**
 * loadRuns reads the list of sub-jobs, which has runs and parts together. Without a state the parts are counted at
 * their run; with one they stand for themselves, as their run may be in another.
 */
async function loadRuns(id: string, state: State | undefined, pages: number, signal: AbortSignal) {
  const runs: SubJob[] = [],
    parts = new Map<string, number>();
  let token: string | undefined,
    wanted = pages * 50;
  do {
    const page = await call(
      listSubJobs({
        path: {id},
        query: {state, page_size: 100, page_sort: 'time_created[desc]', page_token: token, count: 'false'},
        signal,
      }),
    );
    for (const s of page.items ?? []) {
      if (!s.parent_id || state) runs.push(s);
      else parts.set(s.root_id, (parts.get(s.root_id) ?? 0) + 1);
    }
    token = page.next_page_token;
  } while (token && runs.length < wanted);
  return {runs, parts, more: token !== undefined};
}

function RunRow({job, run: r, parts}: {job: Job; run: SubJob; parts: number}) {
  const about = [
    r.time_scheduled ? '' : r.parent_id ? t('part') : t('byHand'),
    runTime(r),
    r.attempt > 1 ? t('attempt', {n: r.attempt}) : '',
    parts ? t('parts', {n: parts}) : '',
  ].filter(Boolean);
  return (
    <li>
      <a class="job-run" href={hrefQuery({run: runParam(job, r.id)})}>
        <RunState state={r.state} />
        <strong class="clip">{runName(r)}</strong>
        <span class="faint num nowrap" title={dateTime(r.time_created)}>
          {ago(r.time_created)}
        </span>
        <span class="about muted num">
          {about.join(' · ')}
          <Progress sub={r} />
          {r.error && (
            <span class="clip job-why" lang="en">
              {r.error}
            </span>
          )}
        </span>
      </a>
    </li>
  );
}

/** AllLogs are the lines of all runs; each links to its run. */
export function AllLogs({job}: {job: Job}) {
  return (
    <LogView
      live
      load={(page_token, signal) =>
        call(
          listJobLogs({
            path: {id: job.id},
            query: {page_size: linesPerPage, page_sort: 'time[desc]', page_token, count: 'false'},
            signal,
          }),
        )
      }
      showRun={(l) => (
        <a title={l.sub_job_id} href={hrefQuery({tab: 'runs', run: runParam(job, l.sub_job_id)})}>
          {t('run')}
        </a>
      )}
    />
  );
}
