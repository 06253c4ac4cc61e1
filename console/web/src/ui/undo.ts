// What follows a change: it is told, and can be undone.
import {asProblem} from '../lib/api';
import {toast} from './dialog';
import {t} from './text';

/** attempt does what has no place for a fault of its own: a fault is told as a toast. */
export async function attempt(what: () => Promise<unknown>): Promise<boolean> {
  try {
    await what();
    return true;
  } catch (e) {
    toast(asProblem(e).message);
    return false;
  }
}

/** undone runs the way back, and says how it went; lost is a sentence on what does not come back. */
export async function undone(back: () => Promise<unknown>, lost?: string): Promise<void> {
  try {
    await back();
    toast(lost ? `${t('undone')}. ${lost}` : t('undone'));
  } catch (e) {
    const problem = asProblem(e);
    toast(problem.problem.status === 412 ? t('changedSince') : problem.message);
  }
}

export interface Change {
  send: () => Promise<unknown>;
  back?: () => Promise<unknown>; // the inverse; without it there is no undo
  said: string;
  after: () => void; // after the change, and after its undo
}

/** carryOut makes a change, tells it, and offers the inverse. */
export async function carryOut({send, back, said, after}: Change): Promise<boolean> {
  const done = await attempt(send);
  if (done) toast(said, back && (() => undone(back).then(after)));
  after();
  return done;
}
