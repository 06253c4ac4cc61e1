// A new job.
import {useSignal} from '@preact/signals';
import {createJob, type Job} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changed} from '../../lib/load';
import {toast} from '../../ui/dialog';
import {FormDialog, faultOf, TextField} from '../../ui/record';
import {codeOf, mustBeSendable, type Form, type Profile} from './form';
import {PolicyFields} from './policy';
import {ScheduleFields} from './schedule';
import {TargetFields} from './target';
import {t} from './text';
import {ownZone} from './words';

const fresh = (): Profile => ({
  code: '',
  name: '',
  schedule: {type: 'cron', cron: '30 2 * * *', timezone: ownZone},
  target: {type: 'webhook', url: ''},
  timeout_seconds: 60,
  retry: {max: 0, backoff_seconds: 60},
  concurrency: 'allow',
  misfire: 'fire_once',
});

export function Create({close}: {close: (made?: Job) => void}) {
  const value = useSignal<Profile>(fresh());
  const ownCode = useSignal(false);
  const set: Form['set'] = (member, v) => {
    value.value = {...value.value, [member]: v};
  };
  const {name, code} = value.value;
  return (
    <FormDialog
      wide
      title={t('create')}
      yes={t('createDo')}
      submit={async (key) => {
        mustBeSendable(value.value);
        return call(createJob({body: value.value, headers: {'Idempotency-Key': key}}));
      }}
      done={(job) => {
        changed('jobs');
        toast(t('createdDone', {name: job.name}));
        close(job);
      }}
      close={() => close()}
    >
      {(error) => {
        const form: Form = {
          value: value.value,
          set,
          fault: (path) => faultOf(error, path),
          changed: () => false,
          readOnly: false,
        };
        return (
          <>
            <div class="grid-2">
              <TextField
                label={t('name')}
                error={form.fault('name')}
                required
                value={name}
                set={(v) => {
                  set('name', v);
                  if (!ownCode.value) set('code', codeOf(v));
                }}
              />
              <TextField
                label={t('code')}
                help={t('codeHelp')}
                error={form.fault('code')}
                required
                mono
                value={code}
                set={(v) => {
                  ownCode.value = v !== '';
                  set('code', v);
                }}
              />
            </div>
            <section class="section">
              <h3>{t('schedule')}</h3>
              <ScheduleFields form={form} />
            </section>
            <section class="section">
              <h3>{t('target')}</h3>
              <TargetFields form={form} />
            </section>
            <details class="fold-out">
              <summary>{t('policy')}</summary>
              <PolicyFields form={form} />
            </details>
          </>
        );
      }}
    </FormDialog>
  );
}
