import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect} from 'preact/hooks';
import {asProblem, type ApiError} from '../../lib/api';
import {guard, mayLeave, underWay} from '../../lib/router';
import {Button} from '../basics';
import {Dialog} from '../dialog';
import {ShowAsButton} from '../show-as';
import {t} from '../text';
import {Faults} from './save';

export interface FormDialogProps<R> {
  title: string;
  yes: string; // the button that sends
  submit: (key: string) => Promise<R>; // sends; the Idempotency-Key stays the same while the outcome is unknown
  done: (result: R) => unknown; // closes the dialog, among others
  close: () => void;
  children: (error: ApiError | undefined) => ComponentChildren;
  start?: ComponentChildren; // at the other end of the foot
  danger?: boolean;
  disabled?: boolean;
  scope?: string;
  wide?: boolean;
}

/**
 * FormDialog asks for what one call needs: a new record, or the details of an action. What is wrong stands above the
 * form and at its fields; pressing twice sends once; closing asks when something has been typed.
 */
export function FormDialog<R>(p: FormDialogProps<R>) {
  const error = useSignal<ApiError | undefined>(undefined);
  const busy = useSignal(false);
  const typed = useSignal(false);
  const key = useSignal(crypto.randomUUID());
  useEffect(() => guard(() => typed.value), []);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy.value || p.disabled) return;
    busy.value = true;
    error.value = undefined;
    try {
      const result = await underWay(
        p.submit(key.value).then((made) => {
          typed.value = false;
          return made;
        }),
      );
      await p.done(result);
    } catch (e2) {
      const problem = asProblem(e2);
      error.value = problem;
      if (problem.problem.status >= 400 && problem.problem.status < 500) key.value = crypto.randomUUID();
    } finally {
      busy.value = false;
    }
  };
  const close = async () => {
    if (typed.value && !(await mayLeave())) return;
    typed.value = false;
    p.close();
  };
  return (
    <Dialog
      wide={p.wide}
      title={p.title}
      onClose={() => void close()}
      foot={
        <>
          {p.start}
          <ShowAsButton
            action={() => p.submit(key.value)}
            disabled={p.disabled}
            failed={(e) => {
              error.value = asProblem(e);
            }}
          />
          <Button onClick={() => void close()}>{t('cancel')}</Button>
          <Button
            kind={p.danger ? 'danger primary' : 'primary'}
            scope={p.scope}
            busy={busy.value}
            disabled={p.disabled}
            onClick={(e) => void submit(e)}
          >
            {p.yes}
          </Button>
        </>
      }
    >
      <form
        class="stack"
        noValidate
        onSubmit={submit}
        onInput={() => {
          typed.value = true;
        }}
      >
        <Faults error={error.value} />
        {p.children(error.value)}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
