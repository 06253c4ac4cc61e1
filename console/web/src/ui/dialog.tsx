// Dialogs and toasts, and the functions that ask.
import {signal, useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect, useId, useRef} from 'preact/hooks';
import {asProblem, setNotice} from '../lib/api';
import {setAsk} from '../lib/router';
import {writes, type Write} from '../lib/writes';
import {Button} from './basics';
import {Icon} from './icon';
import {ShowAsButton, ShowAsLayer, showAs} from './show-as';
import {t} from './text';

const layers: HTMLDialogElement[] = []; // the newest, on top, last
const ownEscape = '[popover=auto]:popover-open, [type=search]:focus';

/** Dialog is modal: the browser keeps the focus in it, and gives it back. */
export function Dialog({
  title,
  children,
  foot,
  onClose,
  wide,
  class: name,
}: {
  title: string;
  children: ComponentChildren;
  foot?: ComponentChildren;
  onClose?: () => void; // absent: only a button of the foot closes it
  wide?: boolean;
  class?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const leave = useRef(onClose);
  leave.current = onClose;
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const box = dialog.current!;
    // A browser closes a dialog at the second Esc in a row, whatever onCancel says: so the key does not get there.
    const escape = (e: KeyboardEvent) => {
      if (e.key !== 'Escape' || e.defaultPrevented || layers.at(-1) !== box || box.querySelector(ownEscape)) return;
      e.preventDefault();
      leave.current?.();
    };
    addEventListener('keydown', escape);
    layers.push(box);
    box.showModal();
    const first = (what: string) => box.querySelector<HTMLElement>(what);
    (first('[autofocus]') ?? first('input, textarea, select'))?.focus();
    return () => {
      removeEventListener('keydown', escape);
      layers.splice(layers.indexOf(box), 1);
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={[wide && 'wide', name].filter(Boolean).join(' ')}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        onClose?.();
      }}
    >
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        {onClose && <Button kind="ghost" icon="x" label={t('close')} onClick={onClose} />}
      </div>
      <div class="dialog-body">{children}</div>
      {foot && <div class="dialog-foot">{foot}</div>}
    </dialog>
  );
}

export interface Question {
  title: string;
  text?: ComponentChildren;
  yes: string;
  no?: string;
  danger?: boolean;
  typed?: string; // has to be typed: for what cannot be undone
  action?: () => Promise<unknown>; // what yes sends, for those who want to see it as a command
}

const asked = signal<(Question & {answer: (yes: boolean) => void}) | null>(null);

/** confirm asks a question over the page. */
export function confirm(q: Question): Promise<boolean> {
  return new Promise((answer) => {
    asked.value = {...q, answer};
  });
}

setAsk(() => confirm({title: t('leaveTitle'), text: t('leaveText'), yes: t('leave'), no: t('stay'), danger: true}));

function Asked() {
  const q = asked.value!;
  const typed = useSignal('');
  const field = useId();
  const end = (yes: boolean) => {
    asked.value = null;
    q.answer(yes);
  };
  const off = q.typed !== undefined && typed.value.trim() !== q.typed;
  return (
    <Dialog
      title={q.title}
      onClose={() => end(false)}
      foot={
        <>
          {q.action && <ShowAsButton action={q.action} failed={(e) => toast(asProblem(e).message)} />}
          <Button onClick={() => end(false)}>{q.no ?? t('cancel')}</Button>
          <Button kind={q.danger ? 'danger primary' : 'primary'} disabled={off} onClick={() => end(true)}>
            {q.yes}
          </Button>
        </>
      }
    >
      {q.text && <div class="muted stack">{q.text}</div>}
      {q.typed !== undefined && (
        <div class="field">
          <label for={field}>{t('typeName', {name: q.typed})}</label>
          <input
            id={field}
            class="input"
            autocomplete="off"
            spellcheck={false}
            value={typed.value}
            onInput={(e) => {
              typed.value = e.currentTarget.value;
            }}
            onKeyDown={(e) => {
              if (e.key === 'Enter' && !off) end(true);
            }}
          />
        </div>
      )}
    </Dialog>
  );
}

interface ToastState {
  id: number;
  text: string;
  undo?: () => void | Promise<void>;
  link?: string; // where what it tells of can be seen
  write?: Write; // what was sent
}

const toasts = signal<ToastState[]>([]);
let count = 0;

/** toast tells what was done; with undo it stays for 30 seconds and offers the way back, as with a link. */
export function toast(text: string, undo?: () => void | Promise<void>, link?: string): void {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-2), {id, text, undo, link, write: untold()}];
  setTimeout(() => drop(id), undo || link ? 30_000 : 6000);
}

let told: Write | undefined;

// untold is the write that a toast is about: the newest one, if no toast has told it.
function untold(): Write | undefined {
  const last = writes.value[0];
  if (!last || last === told || (last.status ?? 500) >= 400 || Date.now() - last.time.getTime() > 60_000)
    return undefined;
  told = last;
  return last;
}

function drop(id: number): void {
  toasts.value = toasts.value.filter((x) => x.id !== id);
}

setNotice(() => toast(t('repeated')));

/** Layers are above every screen. */
export function Layers() {
  return (
    <>
      {asked.value && <Asked key={asked.value.title} />}
      <div class="toasts" role="status" aria-live="polite">
        {toasts.value.map((x) => (
          <div class="toast" key={x.id}>
            <span class="grow">{x.text}</span>
            {x.link && (
              <a href={x.link} onClick={() => drop(x.id)}>
                {t('seeIt')}
              </a>
            )}
            {x.undo && (
              <button
                type="button"
                onClick={() => {
                  drop(x.id);
                  void x.undo!();
                }}
              >
                {t('undo')}
              </button>
            )}
            {x.write && (
              <button type="button" title={t('showAs')} onClick={() => showAs(x.write!)}>
                {t('asCommand')}
              </button>
            )}
            <button type="button" class="x" aria-label={t('close')} onClick={() => drop(x.id)}>
              <Icon name="x" size={14} />
            </button>
          </div>
        ))}
      </div>
      <ShowAsLayer />
    </>
  );
}
