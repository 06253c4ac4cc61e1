// Running a job now, with its own payload or another.
import {useSignal} from '@preact/signals';
import {triggerJob, type Job, type SubJob} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changed} from '../../lib/load';
import {may} from '../../lib/session';
import {JsonView} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {JsonField, mustBeJson} from '../../ui/jsonfield';
import {FormDialog, faultOf} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {optional} from './form';
import {ofFunctions} from './target';
import {t} from './text';

/** mayRun is the scope that a run needs: a payload for a function is a change of what the function is called with. */
export function mayRun(job: Job, withPayload: boolean): string {
  return withPayload && job.target.type === 'function' && !may(ofFunctions) ? ofFunctions : 'jobs:write';
}

export function Trigger({job, close}: {job: Job; close: (run?: SubJob) => void}) {
  const own = useSignal(true);
  const payload = useSignal<unknown>(job.target.payload);
  const lacks = mayRun(job, true) === ofFunctions;
  const choice = (mine: boolean, label: string, help?: string) => (
    <label class="check">
      <input
        type="radio"
        name="payload"
        checked={own.value === mine}
        disabled={!mine && lacks}
        onChange={() => {
          own.value = mine;
        }}
      />
      <span>
        {label}
        {help && <span class="help faint"> {help}</span>}
      </span>
    </label>
  );
  return (
    <FormDialog
      title={t('triggerTitle', {name: job.name})}
      yes={t('trigger')}
      submit={async (key) => {
        const body = own.value ? {} : {payload: payload.value};
        mustBeJson(body);
        return call(triggerJob({path: {id: job.id}, body, headers: {'Idempotency-Key': key}}));
      }}
      done={(run) => {
        toast(t('triggered', {n: run.number}));
        changed('jobs');
        close(run);
      }}
      close={() => close()}
    >
      {(error) => (
        <>
          {job.state === 'suspended' && <p class="muted">{t('triggerSuspended')}</p>}
          <fieldset class="job-payload stack">
            <legend class="visually-hidden">{t('payload')}</legend>
            {choice(true, t('ownPayload'))}
            {own.value && job.target.payload !== undefined && <JsonView value={job.target.payload} />}
            {choice(false, t('otherPayload'), lacks ? ui('needsScope', {scope: ofFunctions}) : undefined)}
            {!own.value && (
              <JsonField
                label={t('payload')}
                error={faultOf(error, 'payload')}
                value={payload.value}
                set={(v) => {
                  payload.value = optional(v);
                }}
              />
            )}
          </fieldset>
        </>
      )}
    </FormDialog>
  );
}
