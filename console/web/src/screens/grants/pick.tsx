// Pick is a field that finds one of many while somebody types: no list is loaded whole.
import {useSignal} from '@preact/signals';
import {useEffect, useId, useRef} from 'preact/hooks';
import {aborted} from '../../lib/api';
import {Icon, type IconName} from '../../ui/icon';
import type {InputProps} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {t} from './text';

export interface Choice {
  value: string;
  label: string;
  about?: string;
  icon?: IconName;
}

export interface PickProps {
  label: string; // for screen readers, and what is shown while nothing is chosen
  value: string;
  shown?: string; // the name of the value
  search: (words: string, signal: AbortSignal) => Promise<Choice[]>;
  choose: (value: string, choice: Choice) => void;
  free?: boolean; // what is typed is a value, too
  big?: boolean; // a part of a sentence
  disabled?: boolean;
  input?: InputProps;
}

export function Pick(p: PickProps) {
  const text = useSignal<string | null>(null); // null: nobody is typing
  const items = useSignal<Choice[] | null>(null);
  const at = useSignal(0);
  const box = useRef<HTMLInputElement>(null),
    layer = useRef<HTMLUListElement>(null);
  const abort = useRef<AbortController | undefined>(undefined),
    timer = useRef<number | undefined>(undefined);
  const hasty = useRef(false); // Enter came before what was searched for: the first of it is meant
  const list = useId();
  const open = text.value !== null;
  const find = (words: string, after: number) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(async () => {
      abort.current?.abort();
      const controller = (abort.current = new AbortController());
      try {
        const found = await p.search(words, controller.signal);
        if (controller.signal.aborted) return;
        items.value =
          p.free && words && !found.some((c) => c.value === words)
            ? [...found, {value: words, label: words, about: ui('asTyped')}]
            : found;
        at.value = 0;
        if (hasty.current) take(items.value[0]);
      } catch (e) {
        if (!aborted(e) && !controller.signal.aborted) items.value = [];
      }
    }, after);
  };
  const show = () => {
    if (open || p.disabled) return;
    text.value = '';
    items.value = null;
    find('', 0);
  };
  const close = () => {
    hasty.current = false;
    clearTimeout(timer.current);
    abort.current?.abort();
    text.value = null;
  };
  const take = (c: Choice | undefined) => {
    if (!c) return;
    close();
    p.choose(c.value, c);
  };
  useEffect(() => {
    if (!open) return layer.current?.hidePopover();
    const a = box.current!.getBoundingClientRect(),
      l = layer.current!;
    l.showPopover();
    l.style.minWidth = `${Math.max(240, a.width)}px`;
    const left = Math.max(8, Math.min(a.left, innerWidth - l.offsetWidth - 8));
    const above = a.bottom + 280 > innerHeight && a.top > innerHeight - a.bottom;
    l.style.left = `${left}px`;
    l.style.top = above ? 'auto' : `${a.bottom + 4}px`;
    l.style.bottom = above ? `${innerHeight - a.top + 4}px` : 'auto';
  }, [open, items.value]);
  useEffect(() => close, []);
  const name = p.shown || p.value;
  return (
    <span class={p.big ? 'grants-pick-big' : 'grants-pick'} data-empty={!name || undefined}>
      {p.big && (
        <span class="ghost" aria-hidden="true">
          {text.value || name || p.label}
        </span>
      )}
      <input
        ref={box}
        {...p.input}
        size={p.big ? 1 : undefined}
        class={p.big ? undefined : 'input'}
        role="combobox"
        aria-label={p.input ? undefined : p.label}
        aria-expanded={open}
        aria-controls={list}
        aria-autocomplete="list"
        disabled={p.disabled}
        autocomplete="off"
        spellcheck={false}
        aria-activedescendant={open && items.value?.length ? `${list}-${at.value}` : undefined}
        value={open ? text.value! : name}
        placeholder={name || p.label}
        onFocus={show}
        onClick={show}
        onBlur={close}
        onInput={(e) => {
          text.value = e.currentTarget.value;
          items.value = null; // what was found for other words cannot be taken
          hasty.current = false;
          find(text.value, 140);
        }}
        onKeyDown={(e) => {
          const n = items.value?.length ?? 0;
          if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
            e.preventDefault();
            if (!open) show();
            else if (n) at.value = (at.value + (e.key === 'ArrowDown' ? 1 : n - 1)) % n;
            layer.current?.querySelector(`[id="${list}-${at.value}"]`)?.scrollIntoView({block: 'nearest'});
          } else if (e.key === 'Enter' && open) {
            e.preventDefault();
            hasty.current = items.value === null;
            take(items.value?.[at.value]);
          } else if (e.key === 'Escape' && open) {
            e.preventDefault();
            e.stopPropagation();
            close();
          }
        }}
      />
      <ul
        ref={layer}
        id={list}
        popover="manual"
        class="menu grants-pick-list"
        role="listbox"
        aria-label={p.label}
        onMouseDown={(e) => e.preventDefault()}
      >
        {open &&
          items.value?.map((c, i) => (
            <li key={c.value} id={`${list}-${i}`} role="option" aria-selected={i === at.value} onClick={() => take(c)}>
              {c.icon && <Icon name={c.icon} />}
              <span class="grow clip">{c.label}</span>
              {c.about && <span class="faint clip about">{c.about}</span>}
            </li>
          ))}
        {open && items.value?.length === 0 && <li class="muted none">{t('noneFound')}</li>}
        {open && items.value === null && <li class="muted none">{t('searching')}</li>}
      </ul>
    </span>
  );
}
