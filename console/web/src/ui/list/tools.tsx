// What stands above a list: search, filters, columns.
import {effect, useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {useLoad, useSettled} from '../../lib/load';
import {param, place, setQuery} from '../../lib/router';
import {store, stored} from '../../lib/storage';
import {Menu, Popup} from '../basics';
import {Icon} from '../icon';
import {t} from '../text';
import type {Column, Filter, FilterOption, ListProps} from './types';

/** Search types into q of the URL; box is where the key / puts the focus. */
export function Search({placeholder, box}: {placeholder: string; box: {current: HTMLInputElement | null}}) {
  const text = useSignal(param('q'));
  const timer = useRef<number | undefined>(undefined);
  useEffect(
    () =>
      effect(() => {
        const q = place.value.query.get('q') ?? '';
        if (document.activeElement !== box.current) text.value = q;
      }),
    [],
  );
  const set = (q: string, after: number) => {
    text.value = q;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => void setQuery({q}, {replace: true}), after);
  };
  return (
    <div class="search" role="search">
      <Icon name="search" />
      <input
        ref={box}
        class="input"
        type="text"
        inputMode="search"
        aria-label={t('searchLabel')}
        placeholder={placeholder}
        value={text.value}
        autocomplete="off"
        spellcheck={false}
        onInput={(e) => set(e.currentTarget.value, 160)}
        onKeyDown={(e) => {
          if (e.key !== 'Escape') return;
          e.stopPropagation();
          if (text.value) set('', 0);
          else e.currentTarget.blur();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

export function Chips({filters, children}: {filters: Filter[]; children?: ComponentChildren}) {
  return (
    <div class="chips">
      {filters.map((f) => (
        <FilterChip key={f.param} filter={f} />
      ))}
      {children}
    </div>
  );
}

function FilterChip({filter: f}: {filter: Filter}) {
  const value = f.value ?? param(f.param);
  const label = f.options.find((o) => o.value === value)?.label ?? (value && (f.shown?.(value) || value));
  const choose = f.choose ?? ((to: string) => void setQuery({[f.param]: to}, {replace: true}));
  return (
    <Popup
      title={f.label}
      trigger={(toggle, open) => (
        <button
          type="button"
          class={label ? 'chip on' : 'chip'}
          aria-haspopup="menu"
          aria-expanded={open}
          onClick={toggle}
        >
          {f.label}
          {label && (
            <>
              : <strong>{label}</strong>
            </>
          )}
          <Icon name="down" size={12} />
        </button>
      )}
    >
      {(close) => (
        <FilterOptions
          filter={f}
          value={value}
          choose={(to) => {
            close();
            choose(to);
          }}
        />
      )}
    </Popup>
  );
}

const few = 12; // options that need no search
const patience = 1000; // ms that Enter waits for what is found

/** fitting are the options whose label has the words, or whose value they are. */
export const fitting = (options: FilterOption[], words: string) =>
  options.filter((o) => o.value === words || o.label.toLowerCase().includes(words.toLowerCase()));

/**
 * FilterOptions are the choices of a chip. Many are searched in a field; where they are only the first ones, it finds
 * the others. What is pasted into it can be a value, too.
 */
function FilterOptions({filter: f, value, choose}: {filter: Filter; value: string; choose: (value: string) => void}) {
  const text = useSignal('');
  const words = text.value.trim();
  const settled = useSettled(words, 140);
  const searched = f.find && words ? settled : null;
  const search = useLoad(searched || null, async (signal) => ({
    words: searched,
    found: await f.find!(searched!, signal).catch((): FilterOption[] => []),
  })).state.value.value;
  const fresh = !f.find || search?.words === words; // what is found is about the words
  const found = f.find ? (search?.found ?? []) : fitting(f.options, words);
  const options = words ? [...found] : [{value: '', label: t('any')}, ...f.options];
  const typed = !!words && !!f.typed?.(words);
  if (typed && fresh && !options.some((o) => o.value === words))
    options.push({value: words, label: words, about: t('asTyped')});
  // Enter takes the first option. Before the answer is there, it waits; what is a value itself does not wait long.
  const entered = useSignal('');
  const waits = entered.value !== '' && entered.value === words;
  useEffect(() => {
    if (!waits) return;
    if (fresh) {
      entered.value = '';
      if (options[0]) choose(options[0].value);
      return;
    }
    if (!typed) return;
    const timer = setTimeout(() => choose(words), patience);
    return () => clearTimeout(timer);
  }, [waits, fresh]);
  return (
    <>
      {(f.find || f.typed || f.options.length > few) && (
        <div class="chip-form">
          <input
            class="input"
            autofocus
            aria-label={`${t('searchLabel')}: ${f.label}`}
            placeholder={t('searchLabel')}
            autocomplete="off"
            spellcheck={false}
            value={text.value}
            onInput={(e) => {
              text.value = e.currentTarget.value;
            }}
            onKeyDown={(e) => {
              if (e.key !== 'Enter' || e.isComposing) return;
              e.preventDefault();
              entered.value = text.value.trim();
            }}
          />
        </div>
      )}
      {options.map((o) => (
        <button
          key={o.value}
          type="button"
          role="menuitemradio"
          tabIndex={-1}
          aria-checked={o.value === value}
          onClick={() => choose(o.value)}
        >
          <span class="tick">{o.value === value && <Icon name="check" size={14} />}</span>
          <span class="clip">{o.label}</span>
          {o.about && <span class="faint clip about">{o.about}</span>}
        </button>
      ))}
      {words && fresh && options.length === 0 && <p class="muted chip-none">{t('nothingMatches')}</p>}
    </>
  );
}

export function useColumns<T>(p: ListProps<T>) {
  const storedKey = `columns.${p.name}`;
  const chosen = useSignal<string[] | null>(stored(storedKey)?.split(',') ?? null);
  const is = (c: Column<T>) => (chosen.value ? chosen.value.includes(c.key) : !c.optional) || c === p.columns[0];
  return {
    shown: p.columns.filter(is),
    is,
    toggle: (c: Column<T>) => {
      const next = p.columns.filter((o) => (o === c ? !is(o) : is(o))).map((o) => o.key);
      chosen.value = next;
      store(storedKey, next.join(','));
    },
  };
}

export function ColumnsMenu<T>({p, columns}: {p: ListProps<T>; columns: ReturnType<typeof useColumns<T>>}) {
  if (p.columns.length < 3) return null;
  return (
    <Menu
      kind="ghost"
      small
      icon="columns"
      label={t('columns')}
      title={t('columns')}
      class="only-wide"
      items={p.columns
        .slice(1)
        .map((c) => ({label: c.header, ticked: columns.is(c), keepOpen: true, onClick: () => columns.toggle(c)}))}
    />
  );
}
