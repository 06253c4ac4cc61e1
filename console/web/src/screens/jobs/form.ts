// What the forms of a new job and of a present one share.
import type {Job, JobInputWritable} from '@idplatform/sdk';
import {NotJson, mustBeJson} from '../../ui/jsonfield';

export type Profile = Omit<JobInputWritable, 'id'>;

/** Form is where the parts of a form read and write; a path such as schedule.cron names a member for faults. */
export interface Form {
  value: Profile;
  set: <K extends keyof Profile>(member: K, value: Profile[K]) => void;
  fault: (path: string) => string | undefined;
  changed: (member: keyof Profile) => boolean;
  readOnly: boolean;
  stored?: Job; // of a present job: its secret is kept while its URL stays
}

/** optional takes an empty text of a JsonField for no value. */
export function optional(value: unknown): unknown {
  return value instanceof NotJson && !value.text.trim() ? undefined : value;
}

/** mustBeSendable refuses a job whose payload is not JSON yet. */
export function mustBeSendable(job: Profile): void {
  mustBeJson({'target.payload': job.target.payload});
}

/** hasNull: a merge patch cannot set null, so that a payload with one is sent whole. */
export function hasNull(value: unknown): boolean {
  if (value === null) return true;
  return typeof value === 'object' && Object.values(value).some(hasNull);
}

/** codeOf makes a code of a name: "Nightly report" → nightly-report. */
export function codeOf(name: string): string {
  return name
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 64);
}
