// Times after which objects expire, as people say them.
import {useSignal} from '@preact/signals';
import {locale} from '../../lib/i18n';
import type {InputProps} from '../../ui/record';
import {t} from './text';

const units = [
  ['days', 'day', 86_400],
  ['hours', 'hour', 3600],
  ['minutes', 'minute', 60],
  ['seconds', 'second', 1],
] as const;

const unitOf = (seconds: number) => units.find(([, , size]) => seconds % size === 0)!;

/** duration says seconds in the largest unit that fits: "2 hours". */
export function duration(seconds: number): string {
  const [, unit, size] = unitOf(seconds);
  return new Intl.NumberFormat(locale(), {style: 'unit', unit, unitDisplay: 'long'}).format(seconds / size);
}

/** lifetime says what a ttl means. */
export function lifetime(seconds: number): string {
  return seconds === 0 ? t('never') : t('after', {time: duration(seconds)});
}

/** DurationInput takes a number and a unit, and tells seconds. */
export function DurationInput({
  seconds,
  set,
  readOnly,
  props,
}: {
  seconds: number;
  set: (seconds: number) => void;
  readOnly?: boolean;
  props: InputProps;
}) {
  const unit = useSignal(seconds ? unitOf(seconds)[0] : 'hours');
  const size = units.find(([name]) => name === unit.value)![2];
  return (
    <div class="row">
      <input
        class="input num"
        type="number"
        min={0}
        {...props}
        readOnly={readOnly}
        value={String(seconds / size)}
        onInput={(e) => set(Math.round(Number(e.currentTarget.value) * size))}
      />
      <select
        class="select"
        aria-label={t('expiresAfter')}
        disabled={readOnly}
        value={unit.value}
        onChange={(e) => {
          const before = size;
          unit.value = e.currentTarget.value as 'hours';
          set((seconds / before) * units.find(([name]) => name === unit.value)![2]);
        }}
      >
        {[...units].reverse().map(([name]) => (
          <option key={name} value={name}>
            {t(name)}
          </option>
        ))}
      </select>
    </div>
  );
}
