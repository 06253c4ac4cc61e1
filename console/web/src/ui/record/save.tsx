// What stands below and above a form: the bar that saves, and what was wrong.
import {useEffect, useRef} from 'preact/hooks';
import type {ApiError} from '../../lib/api';
import {useKey} from '../../lib/keys';
import {Button, ProblemText, problemTitle} from '../basics';
import {Icon} from '../icon';
import {ShowAsButton} from '../show-as';
import {t} from '../text';
import type {Draft} from './draft';

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

/** Faults lists all that is wrong with a form, above it; the first faulty input gets the focus. */
export function Faults({error}: {error: ApiError | undefined}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!error) return;
    const first = box.current?.parentElement?.querySelector<HTMLElement>('[aria-invalid="true"]');
    (first ?? box.current)?.focus();
  }, [error]);
  if (!error) return null;
  return (
    <div class="note bad" role="alert" ref={box} tabIndex={-1}>
      <Icon name="alert" />
      <div class="grow">
        <div class="title">{problemTitle(error)}</div>
        {error.problem.errors?.length ? (
          <ul lang="en">
            {error.problem.errors.map((e, i) => (
              <li key={i}>
                <span class="mono">{e.location.replace(/^body\./, '')}</span> {e.message}
                {e.count ? ` (${e.count})` : ''}
              </li>
            ))}
          </ul>
        ) : null}
        <ProblemText error={error} />
      </div>
    </div>
  );
}
