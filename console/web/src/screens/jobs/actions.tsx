// What can be done with a job: run it, stop it for a while, turn it off, delete it.
import {useSignal} from '@preact/signals';
import {deleteJob, resumeJob, suspendJob, updateJob, type Job} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changed} from '../../lib/load';
import {setQuery} from '../../lib/router';
import {Button, type MenuItem} from '../../ui/basics';
import {RecordMenu, type Removal} from '../../ui/record';
import {carryOut} from '../../ui/undo';
import {runParam} from './runs';
import {t} from './text';
import {Trigger} from './trigger';

const scope = 'jobs:write';

export function Actions({job, again}: {job: Job; again: () => void}) {
  const triggering = useSignal(false);
  const {id, name} = job;
  const after = () => {
    changed('jobs');
    again();
  };
  const suspend = () => call(suspendJob({path: {id}})),
    resume = () => call(resumeJob({path: {id}}));
  const turn = (status: '0' | '1') => () => call(updateJob({path: {id}, body: {status}}));
  const pause: MenuItem =
    job.state === 'suspended'
      ? {
          label: t('resume'),
          icon: 'play',
          scope,
          onClick: () => void carryOut({send: resume, back: suspend, said: t('resumedDone', {name}), after}),
        }
      : {
          label: t('suspend'),
          icon: 'pause',
          scope,
          disabled: job.state === 'finished',
          onClick: () => void carryOut({send: suspend, back: resume, said: t('suspendedDone', {name}), after}),
        };
  const power: MenuItem =
    job.status === '0'
      ? {
          label: t('enable'),
          icon: 'check',
          scope,
          onClick: () => void carryOut({send: turn('1'), back: turn('0'), said: t('enabledDone', {name}), after}),
        }
      : {
          label: t('disable'),
          icon: 'lock',
          scope,
          onClick: () => void carryOut({send: turn('0'), back: turn('1'), said: t('disabledDone', {name}), after}),
        };
  return (
    <>
      <Button
        icon="play"
        scope={scope}
        disabled={job.status === '0'}
        onClick={() => {
          triggering.value = true;
        }}
      >
        {t('trigger')}
      </Button>
      <RecordMenu items={[pause, power]} record={job} file={`job-${job.code}`} scope={scope} removal={removal(job)} />
      {triggering.value && (
        <Trigger
          job={job}
          close={(run) => {
            triggering.value = false;
            if (!run) return;
            again();
            void setQuery({tab: 'runs', run: runParam(job, run.id)});
          }}
        />
      )}
    </>
  );
}

function removal(job: Job): Removal {
  const act = (dry_run?: 'true') =>
    call(deleteJob({path: {id: job.id}, query: {dry_run}, headers: {'If-Match': `"${job.version}"`}}));
  return {
    title: t('deleteTitle', {name: job.name}),
    text: (
      <>
        <p>{t('deleteText')}</p>
        {!!job.fired && <p>{t('deleteRuns', {n: job.fired})}</p>}
      </>
    ),
    typed: job.name,
    record: job,
    file: `job-${job.code}`,
    dry: () => act('true'),
    send: () => act(),
    said: t('deletedDone', {name: job.name}),
    kinds: ['jobs'],
    leave: () => setQuery({open: null, tab: null, run: null}, {force: true}),
  };
}
