// Single keys. They do nothing while a person types, and can be turned off (WCAG 2.1.4).
import {signal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {store, stored} from './storage';

export const singleKeys = signal(stored('keys') !== 'off');

export function setSingleKeys(on: boolean): void {
  store('keys', on ? 'on' : 'off');
  singleKeys.value = on;
}

type Handler = (event: KeyboardEvent) => unknown;
const bindings: {key: string; handler: Handler}[] = [];

function typing(target: EventTarget | null): boolean {
  const el = target as HTMLElement | null;
  return !!el?.closest?.('input:not([type=checkbox],[type=radio]), textarea, select, [contenteditable]');
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const withCtrl = event.ctrlKey || event.metaKey;
  if (event.altKey) return;
  const name = (withCtrl ? 'Ctrl+' : '') + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
  if (!withCtrl && event.key !== 'Escape' && (typing(event.target) || (event.key.length === 1 && !singleKeys.value)))
    return;
  if (!withCtrl && document.querySelector('dialog[open]')) return; // the dialog's own keys alone
  // The newest handler first: a panel is above its list.
  for (const b of [...bindings].reverse()) {
    if (b.key === name && b.handler(event) !== false) {
      event.preventDefault();
      return;
    }
  }
});

/** useKey handles a key while the component is shown; a handler that returns false leaves the key to others. */
export function useKey(key: string, handler: Handler): void {
  const current = useRef(handler);
  current.current = handler;
  useEffect(() => {
    const binding = {key, handler: (event: KeyboardEvent) => current.current(event)};
    bindings.push(binding);
    return () => {
      bindings.splice(bindings.indexOf(binding), 1);
    };
  }, [key]);
}
