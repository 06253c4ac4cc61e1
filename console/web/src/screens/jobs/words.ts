// Schedules, pauses and durations as people say them.
import type {JobSchedule} from '@idplatform/sdk';
import {amount, dateTime} from '../../lib/format';
import {locale} from '../../lib/i18n';
import {cronWords} from './cron';
import {t} from './text';

export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

export type Unit = (typeof units)[number][0];

/** unitOf is the largest unit in which seconds are a whole number. */
export function unitOf(seconds: number): {unit: Unit; size: number} {
  const [unit, size] = units.find(([, s]) => seconds > 0 && seconds % s === 0) ?? units[3];
  return {unit, size};
}

export const sizeOf = (unit: Unit) => units.find(([u]) => u === unit)![1];

/** durationWords says seconds in the largest whole unit: "15 minutes". */
export function durationWords(seconds: number): string {
  const {unit, size} = unitOf(seconds);
  return amount(seconds / size, unit, 'long');
}

/** scheduleWords says when a job fires; a cron expression that has no plain words is shown as it is. */
export function scheduleWords(s: JobSchedule): string {
  switch (s.type) {
    case 'cron':
      return cronWords(s.cron ?? '') ?? s.cron ?? '';
    case 'interval':
      return t('everyAmount', {amount: durationWords(s.every_seconds ?? 0)});
    case 'once':
      return t('onceAt', {time: dateTime(s.at)});
    default:
      return t('manualWords');
  }
}

/** retryWords says after which pauses a failed run is tried again: they double, up to an hour. */
export function retryWords(max: number, backoff: number): string {
  if (!max) return t('retryNone');
  if (!backoff) return t('retryAtOnce', {n: max});
  const pauses = Array.from({length: Math.min(max, 4)}, (_, i) => durationWords(Math.min(3600, backoff * 2 ** i))).join(
    t('comma'),
  );
  return t('retryAfter', {n: max, pauses: max > 4 ? `${pauses} …` : pauses});
}

/** inZone is a time with its weekday in a time zone; in UTC if the browser does not know the zone. */
export function inZone(text: string, zone: string): string {
  const at = new Date(text);
  const format = (timeZone: string) =>
    new Intl.DateTimeFormat(locale(), {
      timeZone,
      weekday: 'short',
      day: 'numeric',
      month: 'short',
      ...(at.getFullYear() !== new Date().getFullYear() && {year: 'numeric'}),
      hour: '2-digit',
      minute: '2-digit',
      ...(at.getUTCSeconds() && {second: '2-digit'}),
      hour12: false,
    }).format(at);
  try {
    return format(zone);
  } catch {
    return format('UTC');
  }
}
