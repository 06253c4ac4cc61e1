// How long a run may take, when it is tried again, and what happens to runs that meet.
import type {JobInputWritable} from '@idplatform/sdk';
import {Field, SelectField} from '../../ui/record';
import type {Form} from './form';
import {t} from './text';
import {retryWords} from './words';

const concurrencies = ['allow', 'skip', 'queue'] as const;
const misfires = ['fire_once', 'skip'] as const;

export function PolicyFields({form}: {form: Form}) {
  const v = form.value,
    retry = v.retry ?? {};
  const number = (
    label: string,
    path: string,
    value: number | undefined,
    max: number,
    set: (n: number | undefined) => void,
    help?: string,
  ) => (
    <Field label={label} help={help} error={form.fault(path)} changed={form.changed(path.split('.')[0] as 'retry')}>
      {(p) => (
        <input
          class="input num"
          type="number"
          min={0}
          max={max}
          {...p}
          readOnly={form.readOnly}
          value={value ?? ''}
          onInput={(e) => set(e.currentTarget.value === '' ? undefined : Number(e.currentTarget.value))}
        />
      )}
    </Field>
  );
  const choice = <K extends 'concurrency' | 'misfire'>(member: K, label: string, values: readonly string[]) => (
    <SelectField
      label={label}
      error={form.fault(member)}
      changed={form.changed(member)}
      help={t(`${member}_${v[member] ?? values[0]}Help` as 'misfire_skipHelp')}
      disabled={form.readOnly}
      value={v[member] ?? values[0]}
      set={(v) => form.set(member, v as JobInputWritable[K])}
    >
      {values.map((x) => (
        <option key={x} value={x}>
          {t(`${member}_${x}` as 'misfire_skip')}
        </option>
      ))}
    </SelectField>
  );
  return (
    <div class="grid-2">
      {number(
        t('timeout'),
        'timeout_seconds',
        v.timeout_seconds,
        86_400,
        (n) => form.set('timeout_seconds', n),
        t('timeoutHelp'),
      )}
      <span class="only-wide" />
      {number(
        t('retryMax'),
        'retry.max',
        retry.max,
        20,
        (max) => form.set('retry', {...retry, max}),
        retryWords(retry.max ?? 0, retry.backoff_seconds ?? 0),
      )}
      {number(
        t('backoff'),
        'retry.backoff_seconds',
        retry.backoff_seconds,
        3600,
        (backoff_seconds) => form.set('retry', {...retry, backoff_seconds}),
        t('backoffHelp'),
      )}
      {choice('concurrency', t('concurrency'), concurrencies)}
      {choice('misfire', t('misfire'), misfires)}
    </div>
  );
}
