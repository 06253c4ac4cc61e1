// When an object expires. A write sets it anew, so that a form has to say what it means to keep.
import type {KvObject} from '@idplatform/sdk';
import {dateTime} from '../../lib/format';
import {Field, SelectField} from '../../ui/record';
import {t} from './text';
import {DurationInput, lifetime} from './ttl';

/** Expiry: as it is, as the bucket says, or seconds from the write; 0 is never. */
export type Expiry = 'keep' | 'bucket' | number;

/** ttlOf is ttl_seconds of a write; undefined is the bucket's. */
export function ttlOf(expiry: Expiry, expires: string | null): number | undefined {
  if (expiry === 'bucket') return undefined;
  if (expiry !== 'keep') return expiry;
  if (!expires) return 0;
  return Math.max(1, Math.ceil((new Date(expires).getTime() - Date.now()) / 1000));
}

export function ExpiryField({
  expiry,
  set,
  object,
  bucketTtl,
  readOnly,
  error,
}: {
  expiry: Expiry;
  set: (expiry: Expiry) => void;
  object?: KvObject; // absent: a new one
  bucketTtl: number;
  readOnly?: boolean;
  error?: string;
}) {
  const choice = typeof expiry === 'number' ? (expiry === 0 ? 'never' : 'after') : expiry;
  const options = [
    object && {value: 'keep', label: t('keepExpiry', {time: dateTime(object.time_expires) || t('never')})},
    {value: 'bucket', label: t('bucketTtl', {time: lifetime(bucketTtl)})},
    {value: 'never', label: t('never')},
    {value: 'after', label: t('expiresAfter')},
  ].filter((o) => o !== undefined);
  return (
    <>
      <SelectField
        label={t('expires')}
        error={error}
        changed={object && expiry !== 'keep'}
        disabled={readOnly}
        value={choice}
        set={(v) => {
          const to = v;
          set(to === 'never' ? 0 : to === 'after' ? 3600 : (to as 'keep'));
        }}
      >
        {options.map((o) => (
          <option key={o.value} value={o.value}>
            {o.label}
          </option>
        ))}
      </SelectField>
      {choice === 'after' && (
        <Field label={t('expiresAfter')}>
          {(p) => <DurationInput seconds={expiry as number} set={(n) => set(Math.max(1, n))} props={p} />}
        </Field>
      )}
    </>
  );
}
