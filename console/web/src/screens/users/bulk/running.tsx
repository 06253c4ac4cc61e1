// A change of many users while it is made: progress, pause, what was refused, what came out.
import {signal, useComputed, useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import type {PasswordResets} from '@idplatform/sdk';
import {Work, batchSize, type Failure} from '../../../lib/batches';
import {saveFile, toCsv} from '../../../lib/csv';
import {duration} from '../../../lib/format';
import {changed} from '../../../lib/load';
import {go, guard, href, screenName} from '../../../lib/router';
import {Button, Failed, Status} from '../../../ui/basics';
import {Dialog, confirm, toast} from '../../../ui/dialog';
import {undone} from '../../../ui/undo';
import {t as ui} from '../../../ui/text';
import {sender, type Action, type Details} from './actions';
import type {Person} from './collect';
import type {UserWork} from './dialog';
import {t} from './text';

/** A change back that takes several batches is shown on the screen of the users, like the change itself. */
const returning = signal<{action: Action; details: Details; work: UserWork} | undefined>(undefined);

export function Returning() {
  const back = returning.value;
  if (!back) return null;
  return (
    <Running
      {...back}
      close={() => {
        returning.value = undefined;
      }}
    />
  );
}

const results: Partial<Record<Action, 'finishedDelete' | 'finishedInvite'>> = {
  delete: 'finishedDelete',
  invite: 'finishedInvite',
};

export function Running({
  action,
  details,
  work,
  close,
}: {
  action: Action;
  details: Details;
  work: UserWork;
  close: (done: boolean) => void;
}) {
  const finished = useComputed(() => work.count >= work.items.length).value;
  const stored = useSignal(false);
  const secretsLeft = useRef(false);
  const done = work.done.value.length,
    total = work.items.length;
  const said = t(results[action] ?? 'finished', {n: done});
  useEffect(() => {
    void work.go();
    return () => work.pause();
  }, []);
  useEffect(() => {
    if (!finished) return;
    changed('users');
    if (action === 'reset' || work.failures.value.length) return;
    toast(said, back(action, details, work.done.value));
    close(true);
  }, [finished]);
  const stop = async () => {
    work.pause();
    if (!(await confirm({title: t('stopTitle'), text: t('stopText', {n: done}), yes: t('stop'), danger: true})))
      return void work.go();
    changed('users');
    close(true);
  };
  const secrets = action === 'reset' && done > 0;
  useEffect(() => guard(() => secretsLeft.current), []);
  secretsLeft.current = secrets && !(finished && stored.value);
  const mayClose = finished ? !secrets || stored.value : !secrets;
  return (
    <Dialog
      title={t(`${action}Title`, {n: total})}
      onClose={mayClose ? () => (finished ? close(true) : void stop()) : undefined}
      foot={
        finished ? (
          <Button kind="primary" disabled={!mayClose} onClick={() => close(true)}>
            {secrets ? t('stored') : ui('done')}
          </Button>
        ) : (
          <Button onClick={() => (work.going.value ? work.pause() : void work.go())}>
            {t(work.going.value ? 'pause' : 'resume')}
          </Button>
        )
      }
    >
      <progress class="users-progress" value={work.count} max={total} aria-label={t(action)} />
      <div class="row spread num" role="status">
        <span>{t('progress', {n: work.count, total})}</span>
        {work.going.value && work.rate > 0 && (
          <span class="muted">
            {t('rate', {n: work.rate})} · {t('timeLeft', {time: duration((total - work.count) / work.rate)})}
          </span>
        )}
        {finished && <Status tone={done ? 'good' : 'bad'}>{said}</Status>}
      </div>
      {work.error.value && <Failed error={work.error.value} again={() => void work.go()} />}
      <Refused failures={work.failures.value} action={action} />
      {secrets && (
        <div class="note warn">
          <div class="grow">{t('storeNow')}</div>
          <Button
            small
            icon="download"
            onClick={() => {
              stored.value = finished; // a file from before lacks those that come after it
              savePasswords(work.done.value, work.results);
            }}
          >
            {t('passwords')}
          </Button>
        </div>
      )}
    </Dialog>
  );
}

// back is the inverse of a change. It leaves alone who was locked, or not, before.
function back(action: Action, d: Details, people: Person[]): (() => Promise<void>) | undefined {
  const inverse: Partial<Record<Action, Action>> = {lock: 'unlock', unlock: 'lock', ...(d.from && {move: 'move'})};
  const other = inverse[action];
  const changedOnes = action === 'move' ? people : people.filter((p) => p.locked === (action === 'unlock'));
  if (!other || changedOnes.length === 0) return undefined;
  const details = {...d, reason: '', from: d.to, to: d.from};
  const send = sender(other, details, changedOnes.length, false);
  if (changedOnes.length > batchSize) {
    return async () => {
      if (screenName.value !== 'users') await go(href('users'));
      if (screenName.value !== 'users') return; // unsaved work keeps the person where they are
      returning.value = {action: other, details, work: new Work(changedOnes, send)};
    };
  }
  return async () => {
    const ids = changedOnes.map((p) => p.id);
    await undone(() => send(ids, crypto.randomUUID()), action === 'lock' ? ui('stayEnded') : undefined);
    changed('users');
  };
}

function savePasswords(people: Person[], results: (PasswordResets | undefined)[]): void {
  const byId = new Map(people.map((p) => [p.id, p]));
  const rows = results.flatMap((r) => r?.items ?? []).map((i) => [i.id, byId.get(i.id)?.username ?? '', i.password]);
  saveFile('passwords.csv', 'text/csv', toCsv([['id', 'username', 'password'], ...rows]));
}

/** Refused lists who is left out, and why; all of them are offered as a file. */
export function Refused({failures, action}: {failures: Failure<Person>[]; action: Action}) {
  if (failures.length === 0) return null;
  const save = () =>
    saveFile(
      `${action}.failed.csv`,
      'text/csv',
      toCsv([['id', 'username', 'reason'], ...failures.map(({item, reason}) => [item.id, item.username, reason])]),
    );
  return (
    <div class="stack">
      <div class="row spread">
        <strong class="num">{t('cannot', {n: failures.length})}</strong>
        <Button small icon="download" onClick={save}>
          {t('failures')}
        </Button>
      </div>
      <ul class="users-refused">
        {failures.slice(0, 20).map(({item, reason}) => (
          <li key={item.id}>
            <span class="clip">{item.name}</span>
            <span class="muted" lang="en">
              {reason}
            </span>
          </li>
        ))}
        {failures.length > 20 && <li class="muted">{t('more', {n: failures.length - 20})}</li>}
      </ul>
    </div>
  );
}
