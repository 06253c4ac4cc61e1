// "Show as": a write as a command of idp or curl, before it is made or after. What draws it is loaded when wanted.
import {signal, useSignal} from '@preact/signals';
import type {ComponentType} from 'preact';
import {useEffect} from 'preact/hooks';
import {useKey} from '../../lib/keys';
import {held, writes, type Write} from '../../lib/writes';
import {Button} from '../basics';
import {t} from '../text';

// What is shown: one write, or all that the page has made.
const shown = signal<Write | 'all' | null>(null);

/** showAs shows a write that was made. */
export function showAs(write: Write): void {
  shown.value = write;
}

/** showWrites shows the last writes. */
export function showWrites(): void {
  shown.value = 'all';
}

/** ShowAsButton shows what an action would send, without sending it. */
export function ShowAsButton({
  action,
  disabled,
  failed,
}: {
  action: () => Promise<unknown>;
  disabled?: boolean;
  failed: (error: unknown) => void; // what is typed is not yet a request
}) {
  const show = async () => {
    try {
      const write = await held(action);
      if (write) shown.value = write;
    } catch (e) {
      failed(e);
    }
  };
  return (
    <Button
      class="show-as"
      kind="ghost"
      icon="code"
      label={t('showAs')}
      disabled={disabled}
      onClick={() => void show()}
    />
  );
}

interface DialogProps {
  shown: Write | 'all';
  made: Write[];
  close: () => void;
}

/** ShowAsLayer is above every dialog. */
export function ShowAsLayer() {
  const part = useSignal<{Dialog: ComponentType<DialogProps>} | null>(null);
  const wanted = shown.value !== null;
  useKey('w', () => {
    shown.value = 'all';
  });
  useEffect(() => {
    if (!wanted || part.value) return;
    import('./dialog').then(
      (m) => {
        part.value = {Dialog: m.ShowAsDialog};
      },
      () => {
        shown.value = null;
      },
    );
  }, [wanted]);
  if (!shown.value || !part.value) return null;
  const {Dialog} = part.value;
  return (
    <Dialog
      shown={shown.value}
      made={writes.value}
      close={() => {
        shown.value = null;
      }}
    />
  );
}
