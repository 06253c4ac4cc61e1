// What stands below and above a form: the bar that saves, and what was wrong.
import {useSignal} from '@preact/signals';
import {useLayoutEffect, useRef} from 'preact/hooks';
import type {ApiError} from '../../lib/api';
import {useKey} from '../../lib/keys';
import {Button, ProblemText, problemTitle, useCountdown} from '../basics';
import {Icon} from '../icon';
import {ShowAsButton} from '../show-as';
import {plainFault, t} from '../text';
import {isAtInput, type Draft} from './draft';

/** SaveBar is the foot of a panel with a form. */
export function SaveBar<T extends object>({draft}: {draft: Draft<T>}) {
  useKey('Ctrl+s', () => {
    void draft.save();
  });
  if (draft.readOnly) return null;
  const n = draft.count.value;
  return (
    <footer class="panel-foot">
      <Button kind="primary" disabled={n === 0} busy={draft.saving.value} onClick={() => void draft.save()}>
        {t('save')}
      </Button>
      <Button kind="ghost" disabled={n === 0} onClick={draft.discard}>
        {t('discard')}
      </Button>
      <span class="muted num" role="status">
        {n === 0 ? t('noChanges') : t('changesCount', {n})}
      </span>
      <ShowAsButton action={draft.send} disabled={n === 0} failed={draft.failed} />
    </footer>
  );
}

/**
 * Faults says above a form what is wrong with it: all that does not stand at an input already. The first faulty input
 * gets the focus. Where the platform is busy or away, it counts down to when another attempt makes sense.
 */
export function Faults({error}: {error: ApiError | undefined}) {
  const box = useRef<HTMLDivElement>(null);
  const shown = useSignal<string[]>([]); // what inputs say
  const left = useCountdown(error);
  useLayoutEffect(() => {
    if (!error) return;
    const form = box.current?.parentElement;
    const first = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
    (first ?? box.current)?.focus();
    shown.value = [...(form?.querySelectorAll('.field > .error') ?? [])].map((e) => e.textContent ?? '');
  }, [error]);
  if (!error) return null;
  const faults = error.problem.errors ?? [];
  const others = faults
    .filter((e) => !shown.value.includes(plainFault(e.message)) || !isAtInput(e))
    .map((e) => ({...e, message: plainFault(e.message)}));
  const said = faults.length > 0 && others.length === 0; // at the inputs
  return (
    <div class="faults" role="alert" ref={box} tabIndex={-1}>
      {!said && (
        <div class="note bad">
          <Icon name="alert" />
          <div class="grow">
            <div class="title">{problemTitle(error)}</div>
            {others.length > 0 && (
              <ul>
                {others.map((e, i) => (
                  <li key={i} lang={/\p{Script=Han}/u.test(e.message) ? undefined : 'en'}>
                    <span class="mono">{e.location.replace(/^body\./, '')}</span> {e.message}
                    {e.count ? ` (${e.count})` : ''}
                  </li>
                ))}
              </ul>
            )}
            {left > 0 && (
              <p class="muted num" role="timer">
                {t('retrySoon', {s: left})}
              </p>
            )}
            <ProblemText error={error} brief={faults.length > 0} />
          </div>
        </div>
      )}
    </div>
  );
}
