// A change of many users: who they are, what the platform would do, and then the change itself in batches.
import {useSignal, type Signal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import type {PasswordResets, User} from '@idplatform/sdk';
import {asProblem, type ApiError} from '../../../lib/api';
import {Work} from '../../../lib/batches';
import {number} from '../../../lib/format';
import {Button, Failed} from '../../../ui/basics';
import {Dialog} from '../../../ui/dialog';
import type {Matching} from '../../../ui/list';
import {Field, TextField} from '../../../ui/record';
import {t as ui} from '../../../ui/text';
import {sender, type Action, type Details} from './actions';
import {collect, personOf, type Person} from './collect';
import {MoveFields} from './move';
import {Refused, Running} from './running';
import {t} from './text';

export type UserWork = Work<Person, PasswordResets | undefined>;

interface BulkProps {
  action: Action;
  selected: User[];
  all?: Matching; // instead of the selected ones
  close: (done: boolean) => void;
}

export function BulkDialog(p: BulkProps) {
  const details = useSignal<Details>({reason: '', tree: '', from: '', to: ''});
  const work = useSignal<UserWork | undefined>(undefined);
  if (work.value) return <Running action={p.action} details={details.value} work={work.value} close={p.close} />;
  return (
    <Prepare
      {...p}
      details={details}
      start={(people) => {
        work.value = new Work(people, sender(p.action, details.value, people.length, false));
      }}
    />
  );
}

/** Prepare finds the users, tries the change dry, and asks. */
function Prepare({
  action,
  selected,
  all,
  close,
  details,
  start,
}: BulkProps & {details: Signal<Details>; start: (people: Person[]) => void}) {
  const people = useSignal<Person[] | undefined>(all ? undefined : selected.map(personOf));
  const found = useSignal(0);
  const error = useSignal<ApiError | undefined>(undefined);
  const turn = useSignal(0);
  const trial = useSignal<UserWork | undefined>(undefined);
  const typed = useSignal('');
  useEffect(() => {
    if (!all || people.value) return;
    const abort = new AbortController();
    error.value = undefined;
    collect(all.query, (n) => (found.value = n), abort.signal).then(
      (list) => {
        people.value = list;
      },
      (e: unknown) => {
        if (!abort.signal.aborted) error.value = asProblem(e);
      },
    );
    return () => abort.abort();
  }, [turn.value]);
  const {tree, from, to} = details.value;
  const ready = people.value !== undefined && (action !== 'move' || to !== '');
  useEffect(() => {
    if (!ready) return;
    const list = people.value!;
    const dry = new Work(list, sender(action, details.value, list.length, true));
    trial.value = dry;
    void dry.go();
    return () => dry.pause();
  }, [ready, tree, from, to]);
  const n = people.value?.length ?? all?.total ?? selected.length;
  const can = trial.value?.finished ? trial.value.done.value : [];
  const sure = action !== 'delete' || typed.value.trim() === String(can.length);
  return (
    <Dialog
      wide={action === 'move'}
      title={t(`${action}Title`, {n})}
      onClose={() => close(false)}
      foot={
        <>
          <Button onClick={() => close(false)}>{ui('cancel')}</Button>
          <Button
            kind={action === 'delete' || action === 'reset' ? 'danger primary' : 'primary'}
            disabled={!ready || can.length === 0 || !sure}
            onClick={() => start(can)}
          >
            {action === 'move' ? t('move') : t(`${action}Title`, {n: can.length || n})}
          </Button>
        </>
      }
    >
      <p class="muted">{t(`${action}Text`)}</p>
      {!all && <p>{names(people.value ?? [])}</p>}
      {error.value && <Failed error={error.value} again={() => turn.value++} />}
      {!people.value && !error.value && <Going text={t('finding', {n: found.value})} n={found.value} of={all!.total} />}
      {action === 'lock' && (
        <TextField
          label={t('reason')}
          value={details.value.reason}
          set={(v) => {
            details.value = {...details.value, reason: v};
          }}
        />
      )}
      {action === 'move' && <MoveFields details={details} />}
      {trial.value && <Trial work={trial.value} action={action} />}
      {action === 'delete' && can.length > 0 && (
        <Field label={t('typeCount', {n: String(can.length)})}>
          {(props) => (
            <input
              class="input num"
              inputMode="numeric"
              autocomplete="off"
              {...props}
              value={typed.value}
              onInput={(e) => {
                typed.value = e.currentTarget.value;
              }}
            />
          )}
        </Field>
      )}
    </Dialog>
  );
}

function names(people: Person[]): string {
  const first = people.slice(0, 8).map((p) => p.name);
  if (people.length > 8) first.push(t('more', {n: people.length - 8}));
  return first.join(', ');
}

export function Going({text, n, of}: {text: string; n: number; of: number}) {
  return (
    <div class="stack" role="status">
      <progress class="users-progress" value={Math.min(n, of)} max={of || 1} aria-label={text} />
      <span class="muted num">{text}</span>
    </div>
  );
}

/** Trial says what the platform would do. */
function Trial({work, action}: {work: UserWork; action: Action}) {
  const total = work.items.length;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.scrollIntoView({block: 'nearest'});
  }, [work.finished]);
  if (work.error.value) return <Failed error={work.error.value} again={() => void work.go()} />;
  if (!work.finished) return <Going text={t('checking', {n: work.count, total})} n={work.count} of={total} />;
  const can = work.done.value.length,
    locked = work.done.value.filter((p) => p.locked).length;
  const said =
    can === total ? t('canAll', {n: can}) : can ? t('canSome', {n: can, total: number(total)}) : t('canNone');
  return (
    <div class={can === total ? 'note' : can ? 'note warn' : 'note bad'} role="status" ref={box}>
      <div class="grow stack">
        <div>
          {said} {(action === 'lock' || action === 'unlock') && locked > 0 && t('already', {n: locked})}
        </div>
        <Refused failures={work.failures.value} action={action} />
      </div>
    </div>
  );
}
