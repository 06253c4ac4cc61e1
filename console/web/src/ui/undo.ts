// A change: it can be asked for first, is told, and can be undone.
import {asProblem} from '../lib/api';
import {confirm, toast, type Question} from './dialog';
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
  ask?: Question; // before the change; it is made only after a yes
  send: () => Promise<unknown>;
  back?: () => Promise<unknown>; // the inverse; without it there is no undo
  said: string;
  after: () => void; // after the change, and after its undo
}

/** carryOut asks if it has a question, makes a change, tells it, and offers the inverse; false if it is not made. */
export async function carryOut({ask, send, back, said, after}: Change): Promise<boolean> {
  if (ask && !(await confirm(ask))) return false;
  const done = await attempt(send);
  if (done) toast(said, back && (() => undone(back).then(after)));
  after();
  return done;
}
