// Loading with the states that every screen has: nothing yet, loaded, loading anew with the old value, failed.
import {signal, useSignal, type Signal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {aborted, asProblem, type ApiError} from './api';

export interface Loading<T> {
  value: T | undefined; // also while it is loaded anew
  error: ApiError | undefined;
  busy: boolean;
}

export interface Loader<T> extends Signal<Loading<T>> {
  again: () => void;
}

/**
 * useLoad loads when its key changes, and drops answers to older keys. A new key keeps the old value, so that it can be
 * shown dimmed.
 */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>) {
  const state = useSignal<Loading<T>>({value: undefined, error: undefined, busy: key !== null});
  const turn = useSignal(0);
  useEffect(() => {
    if (key === null) {
      state.value = {value: undefined, error: undefined, busy: false};
      return;
    }
    const abort = new AbortController();
    state.value = {...state.value, busy: true};
    load(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) state.value = {value, error: undefined, busy: false};
      },
      (error: unknown) => {
        if (!abort.signal.aborted && !aborted(error))
          state.value = {...state.value, error: asProblem(error), busy: false};
      },
    );
    return () => abort.abort();
  }, [key, turn.value]);
  return {
    state,
    again: () => {
      turn.value++;
    },
  };
}

/** changed tells lists that records of a kind have changed, so that they load anew. */
export const changes = signal<Record<string, number>>({});

export function changed(kind: string): void {
  changes.value = {...changes.value, [kind]: (changes.value[kind] ?? 0) + 1};
}

/** useLate is true when a condition has held for a while: what is quick shows no skeleton. */
export function useLate(condition: boolean, after = 150): boolean {
  const late = useSignal(false);
  useEffect(() => {
    late.value = false;
    if (!condition) return;
    const timer = setTimeout(() => {
      late.value = true;
    }, after);
    return () => clearTimeout(timer);
  }, [condition]);
  return condition && late.value;
}

/** useSettled is a text that has not changed for a while: what is typed is not asked about letter by letter. */
export function useSettled(text: string | null, after: number): string | null {
  const settled = useSignal(text);
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = text;
    }, after);
    return () => clearTimeout(timer);
  }, [text]);
  return text === null ? null : settled.value;
}
