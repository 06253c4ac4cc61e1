// The schedule of a job: its form, and the times at which it would fire, asked for while somebody types.
import {useSignal} from '@preact/signals';
import {useEffect, useId} from 'preact/hooks';
import {getJobFireTimes, previewFireTimes, type JobSchedule} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {Failed, Late} from '../../ui/basics';
import {localTime} from '../../ui/live';
import {Field, faultOf, SelectField, TextField} from '../../ui/record';
import {cronWords} from './cron';
import type {Form} from './form';
import {t} from './text';
import {inZone, ownZone, scheduleWords, sizeOf, unitOf, type Unit} from './words';

type Type = JobSchedule['type'];

const types: Type[] = ['cron', 'interval', 'once', 'manual'];
const examples = ['0 * * * *', '30 2 * * *', '0 9 * * MON-FRI', '0 6 * * MON', '0 0 1 * *'];

/** starts are what a schedule begins with when somebody chooses its type. */
const starts: Record<Type, () => JobSchedule> = {
  cron: () => ({type: 'cron', cron: '30 2 * * *', timezone: ownZone}),
  interval: () => ({type: 'interval', every_seconds: 3600}),
  once: () => ({type: 'once', at: new Date(Math.ceil(Date.now() / 3_600_000) * 3_600_000).toISOString()}),
  manual: () => ({type: 'manual'}),
};

export function ScheduleFields({form}: {form: Form}) {
  const s = form.value.schedule;
  const set = (value: Partial<JobSchedule>) => form.set('schedule', {...s, ...value});
  const preview = useTimes(form);
  const fault = (member: string) =>
    form.fault(`schedule.${member}`) ?? faultOf(preview.state.value.error, `schedule.${member}`);
  const kind = (
    <SelectField
      label={t('fires')}
      error={form.fault('schedule.type')}
      changed={form.changed('schedule')}
      disabled={form.readOnly}
      value={s.type}
      set={(v) => {
        const type = v as Type;
        form.set('schedule', starts[type]());
      }}
    >
      {types.map((x) => (
        <option key={x} value={x}>
          {t(x)}
        </option>
      ))}
    </SelectField>
  );
  return (
    <div class="job-schedule">
      <div class="grid-2">
        {kind}
        {s.type === 'cron' && <ZoneField form={form} fault={fault('timezone')} />}
        {s.type === 'interval' && <IntervalField form={form} fault={fault('every_seconds')} />}
        {s.type === 'once' && (
          <TextField
            label={t('at')}
            help={t('ownZone', {zone: ownZone})}
            error={fault('at')}
            type="datetime-local"
            readOnly={form.readOnly}
            value={s.at ? localTime(s.at) : ''}
            set={(v) => {
              const at = new Date(v);
              set({at: isNaN(at.getTime()) ? undefined : at.toISOString()});
            }}
          />
        )}
        {s.type === 'cron' && <CronField form={form} fault={fault('cron')} />}
      </div>
      {s.type !== 'manual' && <FireTimes form={form} preview={preview} />}
    </div>
  );
}

function CronField({form, fault}: {form: Form; fault?: string}) {
  const s = form.value.schedule,
    cron = s.cron ?? '';
  const set = (value: string) => form.set('schedule', {...s, cron: value});
  const words = cronWords(cron);
  return (
    <>
      <TextField
        wide
        label={t('cronLabel')}
        error={fault}
        help={words ?? t('cronHelp')}
        readOnly={form.readOnly}
        mono
        value={cron}
        set={(v) => set(v)}
      />
      {!form.readOnly && (
        <div class="wide chips" role="group" aria-label={t('examples')}>
          {examples.map((x) => (
            <button
              key={x}
              type="button"
              class={x === cron ? 'chip on' : 'chip'}
              aria-pressed={x === cron}
              onClick={() => set(x)}
            >
              {cronWords(x)}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

function ZoneField({form, fault}: {form: Form; fault?: string}) {
  const s = form.value.schedule;
  const id = useId();
  return (
    <Field label={t('zone')} error={fault}>
      {(p) => (
        <>
          <input
            class="input"
            {...p}
            list={id}
            readOnly={form.readOnly}
            spellcheck={false}
            autocomplete="off"
            placeholder="UTC"
            value={s.timezone ?? ''}
            onInput={(e) => form.set('schedule', {...s, timezone: e.currentTarget.value || undefined})}
          />
          <datalist id={id}>
            {['UTC', ...Intl.supportedValuesOf('timeZone')].map((z) => (
              <option key={z} value={z} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

function IntervalField({form, fault}: {form: Form; fault?: string}) {
  const s = form.value.schedule,
    seconds = s.every_seconds ?? 0;
  const unit = useSignal<Unit>(unitOf(seconds).unit);
  const size = sizeOf(unit.value);
  const shown = seconds % size === 0 ? size : 1; // loaded anew with a finer interval
  const set = (n: number, of: Unit) => {
    unit.value = of;
    form.set('schedule', {...s, every_seconds: n ? Math.round(n * sizeOf(of)) : undefined});
  };
  return (
    <Field label={t('every')} error={fault}>
      {(p) => (
        <div class="row">
          <input
            class="input num"
            type="number"
            min={1}
            {...p}
            readOnly={form.readOnly}
            value={seconds ? seconds / shown : ''}
            onInput={(e) => set(Number(e.currentTarget.value), shown === size ? unit.value : 'second')}
          />
          <select
            class="select"
            aria-label={t('unit')}
            disabled={form.readOnly}
            value={shown === size ? unit.value : 'second'}
            onChange={(e) => set(seconds / shown, e.currentTarget.value as Unit)}
          >
            {(['second', 'minute', 'hour', 'day'] as const).map((u) => (
              <option key={u} value={u}>
                {t(u)}
              </option>
            ))}
          </select>
        </div>
      )}
    </Field>
  );
}

/** runs tells whether a present job fires by the schedule that the form shows. */
function runs({stored: job, changed}: Form): boolean {
  return job?.state === 'scheduled' && job.status !== '0' && !changed('schedule');
}

/**
 * useTimes asks for the next times, a moment after the schedule was last changed: those of the job itself, or those
 * that the schedule would have from now on.
 */
function useTimes(form: Form) {
  const s = form.value.schedule,
    now = JSON.stringify(s);
  const settled = useSignal(now);
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = now;
    }, 300);
    return () => clearTimeout(timer);
  }, [now]);
  const complete = s.type === 'cron' ? s.cron : s.type === 'interval' ? s.every_seconds : s.at;
  const job = runs(form) ? form.stored : undefined;
  return useLoad(complete ? `${settled.value} ${job?.next_fire_time}` : null, (signal) =>
    job
      ? call(getJobFireTimes({path: {id: job.id}, query: {count: 10}, signal}))
      : call(previewFireTimes({body: {schedule: JSON.parse(settled.value) as JobSchedule, count: 10}, signal})),
  );
}

function FireTimes({form, preview}: {form: Form; preview: ReturnType<typeof useTimes>}) {
  const s = form.value.schedule;
  const {value, error, busy} = preview.state.value;
  const zone = s.timezone || 'UTC',
    two = s.type === 'cron' && zone !== ownZone;
  if (error && error.problem.errors?.length) return <p class="faint">{t('noTimes')}</p>; // said at its field
  if (error) return <Failed error={error} again={preview.again} />;
  const times = value?.fire_times ?? [];
  return (
    <Late busy={busy && !value} lines={4}>
      {value && !times.length && <p class="muted">{t('neverAgain')}</p>}
      {times.length > 0 && (
        <>
          {form.stored && !runs(form) && <p class="faint">{t(form.changed('schedule') ? 'ifSaved' : 'ifResumed')}</p>}
          <table class={busy ? 'job-times busy' : 'job-times'} aria-label={scheduleWords(s)}>
            <thead>
              <tr>
                <th scope="col">{two ? zone : t('nextTimes')}</th>
                {two && <th scope="col">{t('yourZone', {zone: ownZone})}</th>}
                <th scope="col">
                  <span class="visually-hidden">{t('when')}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {times.map((at) => (
                <tr key={at}>
                  <td class="num">{inZone(at, two ? zone : ownZone)}</td>
                  {two && <td class="num muted">{inZone(at, ownZone)}</td>}
                  <td class="num faint">{ago(at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </Late>
  );
}
