// One job: how it goes, its form, its runs and their log.
import {getJob, getSubJob, replaceJob, updateJob, type Job} from '@idplatform/sdk';
import {call, full, type Answer} from '../../lib/api';
import {ago, dateTime, number} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {same} from '../../lib/patch';
import {usePoll} from '../../lib/poll';
import {hrefQuery} from '../../lib/router';
import {Id} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {Facts, FormFields, PanelLoad, RecordPanel, useDraft, type Draft} from '../../ui/record';
import {Actions} from './actions';
import {hasNull, mustBeSendable, type Form} from './form';
import {JobState} from './index';
import {PolicyFields} from './policy';
import {AllLogs, RunState, Runs, isOver, runName, runParam} from './runs';
import {ScheduleFields} from './schedule';
import {TargetFields} from './target';
import {t} from './text';
import {scheduleWords} from './words';

export function JobPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getJob({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

function Loaded({answer, again}: {answer: Answer<Job>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<Job>(answer, {
    scope: 'jobs:write',
    kind: 'jobs',
    load: () => full(getJob({path: {id}})),
    save,
    saved: (now) => t('savedDone', {name: now.name}),
    undoable,
    again,
  });
  usePoll(draft.count.value ? 0 : 10_000, again); // not below what is typed: a change of others has to meet it
  // Firing is no change of the record, so that what was loaded last tells more than the form's base of this version.
  const job = answer.data.version >= draft.base.value.version ? answer.data : draft.base.value;
  return (
    <RecordPanel
      title={job.name}
      subtitle={
        <span class="row">
          <JobState job={job} />
          <span class="clip">{scheduleWords(job.schedule)}</span>
        </span>
      }
      actions={<Actions job={job} again={again} />}
      record={job}
      entity="job"
      draft={draft}
      labels={{
        name: t('name'),
        code: t('code'),
        description: t('description'),
        schedule: t('schedule'),
        target: t('target'),
        timeout_seconds: t('timeout'),
        retry: t('retryMax'),
        concurrency: t('concurrency'),
        misfire: t('misfire'),
        status: t('state'),
      }}
      overview={() => <Overview job={job} draft={draft} />}
      tabs={[
        {name: 'runs', label: t('runs'), content: () => <Runs job={job} again={again} />},
        {name: 'logs', label: t('logs'), content: () => <AllLogs job={job} />},
      ]}
    />
  );
}

/** save sends a patch, or the whole job if its payload has a null, which a merge patch takes for "remove". */
async function save(patch: Partial<Job>, etag: string, job: Job): Promise<Answer<Job>> {
  const path = {id: job.id},
    headers = {'If-Match': etag};
  mustBeSendable(job);
  if (patch.target?.payload !== undefined && hasNull(job.target.payload))
    return full(replaceJob({path, body: job as never, headers}));
  return full(updateJob({path, body: patch as never, headers}));
}

/** The secret of a former URL is not shown, so that a change of both cannot be taken back. */
function undoable(now: Job, before: Job): boolean {
  return !before.target.secret || (now.target.url === before.target.url && now.target.type === before.target.type);
}

function Overview({job, draft}: {job: Job; draft: Draft<Job>}) {
  const base = draft.base.value;
  const form: Form = {
    value: draft.draft.value,
    set: (member, value) => draft.set(member, value),
    fault: draft.fault,
    changed: (member) => !same(draft.get(member), base[member]),
    readOnly: draft.readOnly,
    stored: {...job, target: base.target},
  };
  return (
    <>
      {job.status === '0' ? (
        <p class="note">{t('disabledText')}</p>
      ) : (
        job.state === 'suspended' && <p class="note warn">{t('suspendedText')}</p>
      )}
      <LastRun job={job} />
      <section class="section">
        <h3>{t('schedule')}</h3>
        <ScheduleFields form={form} />
      </section>
      <section class="section">
        <h3>{t('target')}</h3>
        <TargetFields form={form} />
      </section>
      <section class="section">
        <h3>{t('policy')}</h3>
        <PolicyFields form={form} />
      </section>
      <section class="section">
        <h3>{t('about')}</h3>
        <FormFields
          draft={draft}
          fields={[
            {field: 'name', label: t('name')},
            {field: 'code', label: t('code'), help: t('codeHelp')},
            {field: 'description', label: t('description'), kind: 'textarea'},
          ]}
        />
        <Facts
          facts={[
            [t('id'), <Id>{job.id}</Id>],
            [t('fired'), <span class="num">{number(job.fired ?? 0)}</span>],
            [t('scheduledSince'), dateTime(job.scheduled_since)],
            [t('created'), dateTime(job.time_created)],
            [t('modified'), <span title={dateTime(job.time_modified)}>{ago(job.time_modified)}</span>],
            [t('version'), <span class="num">{job.version}</span>],
          ]}
        />
      </section>
    </>
  );
}

/** LastRun is the first thing that somebody wants to know of a job: how it went. */
function LastRun({job}: {job: Job}) {
  const id = job.last_sub_job_id;
  const {state, again} = useLoad(id || null, (signal) => call(getSubJob({path: {id: job.id, sid: id!}, signal})));
  const run = state.value.value;
  usePoll(run && !isOver(run) ? 2000 : 0, again);
  if (!id || !run || run.id !== id) return null;
  return (
    <a class="job-last" href={hrefQuery({tab: 'runs', run: runParam(job, run.id)})}>
      <span class="caps">{t('lastRun')}</span>
      <span class="row">
        <RunState state={run.state} />
        <strong>{runName(run)}</strong>
        <span class="faint num" title={dateTime(run.time_created)}>
          {ago(run.time_created)}
        </span>
        <span class="grow" />
        <Icon name="right" />
      </span>
      {run.error && run.state !== 'succeeded' && (
        <span class="job-why clip" lang="en">
          {run.error}
        </span>
      )}
    </a>
  );
}
