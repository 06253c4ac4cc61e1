// Dates, numbers and sizes as people of the chosen language write them.
import {locale} from './i18n';

export function number(n: number): string {
  return new Intl.NumberFormat(locale()).format(n);
}

/** bytes is a size as people read it: 842 B, 1.2 KiB, 1 MiB. */
export function bytes(n: number): string {
  const unit = n < 1024 ? 0 : n < 1 << 20 ? 1 : 2;
  const value = new Intl.NumberFormat(locale(), {maximumFractionDigits: 1}).format(n / 1024 ** unit);
  return `${value} ${['B', 'KiB', 'MiB'][unit]}`;
}

/** A time as RFC 3339 → day and time in the browser's zone; '' for null. */
export function dateTime(text: string | null | undefined): string {
  if (!text) return '';
  return new Intl.DateTimeFormat(locale(), {dateStyle: 'medium', timeStyle: 'short'}).format(new Date(text));
}

export function date(text: string | null | undefined): string {
  if (!text) return '';
  return new Intl.DateTimeFormat(locale(), {dateStyle: 'medium'}).format(new Date(text));
}

/** The time of a day, to the second. */
export function timeOfDay(time: Date): string {
  return new Intl.DateTimeFormat(locale(), {timeStyle: 'medium'}).format(time);
}

/** How long something takes: "2 min", "40 sec". */
export function duration(seconds: number): string {
  const minutes = seconds >= 90;
  const format = {style: 'unit', unit: minutes ? 'minute' : 'second', maximumFractionDigits: 0} as const;
  return new Intl.NumberFormat(locale(), format).format(Math.ceil(minutes ? seconds / 60 : seconds));
}

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

/** How long ago a time was: "3 minutes ago". */
export function ago(text: string | null | undefined, now = Date.now()): string {
  if (!text) return '';
  const seconds = (new Date(text).getTime() - now) / 1000;
  const format = new Intl.RelativeTimeFormat(locale(), {numeric: 'auto'});
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return format.format(Math.round(seconds / size), unit);
  }
  return format.format(0, 'second');
}

/** Compares names in the order of the language. */
export function compare(a: string, b: string): number {
  return new Intl.Collator(locale(), {numeric: true}).compare(a, b);
}

/** An amount of a unit: "15 minutes", "3 min". */
export function amount(n: number, unit: string, unitDisplay: 'long' | 'short' = 'short'): string {
  return new Intl.NumberFormat(locale(), {style: 'unit', unit, unitDisplay, maximumFractionDigits: 1}).format(n);
}

/** How long something took: "340 ms", "12.5 sec", "3 min 20 sec". */
export function took(ms: number): string {
  if (ms < 1000) return amount(Math.max(0, ms), 'millisecond');
  if (ms < 60_000) return amount(ms / 1000, 'second');
  const minutes = Math.floor(ms / 60_000),
    seconds = Math.floor((ms % 60_000) / 1000);
  if (minutes < 60) return `${amount(minutes, 'minute')} ${amount(seconds, 'second')}`;
  return `${amount(Math.floor(minutes / 60), 'hour')} ${amount(minutes % 60, 'minute')}`;
}
