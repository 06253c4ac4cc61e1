import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {lang, setLang} from '../../lib/i18n';
import {offers} from '../../lib/offers';
import type {Screen} from '../../lib/registry';
import {go, href} from '../../lib/router';
import {may} from '../../lib/session';
import {setTheme} from '../../lib/theme';
import type {Command} from '../../screens/commands';
import type {Hit} from '../../screens/search';
import type {MenuItem} from '../basics';
import {Icon} from '../icon';
import {showWrites} from '../show-as';
import {t} from '../text';
import {helpOpen, leave, offered, title} from './state';

interface Choice {
  key: string;
  icon: Screen['icon'];
  label: ComponentChildren;
  about?: string;
  act: () => void;
}

/** Palette finds screens, records and commands. */
export function Palette({close}: {close: () => void}) {
  const words = useSignal('');
  const at = useSignal(0);
  const hits = useSignal<{screen: Screen; hit: Hit}[]>([]);
  const doing = useSignal<Command[]>([]);
  const box = useRef<HTMLUListElement>(null);
  useEffect(() => {
    import('../../screens/commands').then(
      (m) => {
        doing.value = m.commands();
      },
      () => undefined,
    );
  }, []);
  useEffect(() => {
    hits.value = [];
    const w = words.value.trim();
    if (!w) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      for (const screen of offered.value) {
        import('../../screens/search')
          .then((m) => m.search(screen.name, w, abort.signal))
          .then((found) => {
            if (!abort.signal.aborted) hits.value = [...hits.value, ...found.map((hit) => ({screen, hit}))];
          })
          .catch(() => undefined);
      }
    }, 120);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [words.value]);
  const fits = (text: string) => text.toLowerCase().includes(words.value.trim().toLowerCase());
  const to = (url: string) => () => {
    close();
    void go(url);
  };
  const screenRows: Choice[] = offered.value
    .filter((s) => fits(title(s)) || fits(s.name))
    .map((s) => ({key: s.name, icon: s.icon, label: title(s), act: to(href(s.name))}));
  const recordRows: Choice[] = hits.value.map(({screen, hit}) => ({
    key: hit.href,
    icon: screen.icon,
    label: hit.title,
    about: hit.about,
    act: to(hit.href),
  }));
  const command = (key: string, icon: Screen['icon'], label: string, run: () => void): Choice => ({
    key,
    icon,
    label,
    act: () => {
      close();
      run();
    },
  });
  const theme = (key: 'dark' | 'light' | 'system', icon: Screen['icon']) =>
    command(key, icon, `${t('theme')}: ${t(key)}`, () => setTheme(key));
  const commands = [
    theme('dark', 'moon'),
    theme('light', 'sun'),
    theme('system', 'screen'),
    command('lang', 'globe', lang.value === 'zh' ? 'English' : '简体中文', () =>
      setLang(lang.value === 'zh' ? 'en' : 'zh'),
    ),
    command('writes', 'code', t('keyWrites'), showWrites),
    command('help', 'help', t('help'), () => {
      helpOpen.value = true;
    }),
    command('out', 'out', t('signOut'), () => void leave()),
  ].filter((c) => fits(String(c.label)));
  const recordActions: Choice[] = offers<MenuItem>().flatMap(({record, items}) =>
    items
      .filter((item) => !item.disabled && (item.scope === undefined || may(item.scope)))
      .filter((item) => fits(`${item.label} ${record}`))
      .map((item) => ({
        ...command(`${record} ${item.label}`, item.icon ?? 'more', item.label, () =>
          item.href ? void go(item.href) : item.onClick?.(),
        ),
        about: record,
      })),
  );
  const actions: Choice[] = doing.value
    .filter((c) => fits(c.label))
    .map((c) => ({key: c.href, icon: c.icon, label: c.label, act: to(c.href)}));
  const sections = [
    {name: t('openRecord'), rows: recordActions},
    {name: t('records'), rows: recordRows},
    {name: t('screens'), rows: screenRows},
    {name: t('actions'), rows: actions},
    {name: t('commands'), rows: commands},
  ].filter((s) => s.rows.length);
  const all = sections.flatMap((s) => s.rows);
  const current = Math.min(at.value, all.length - 1);
  useEffect(() => {
    box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({block: 'nearest'});
  }, [current]);
  let i = -1;
  return (
    <Plain class="palette" label={t('palette')} close={close}>
      <input
        class="input"
        autofocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={current >= 0 ? `palette-${current}` : undefined}
        aria-label={t('palette')}
        placeholder={t('paletteHint')}
        value={words.value}
        autocomplete="off"
        spellcheck={false}
        onInput={(e) => {
          words.value = e.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={(e) => {
          if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
            e.preventDefault();
            at.value = (current + (e.key === 'ArrowDown' ? 1 : -1) + all.length) % (all.length || 1);
          } else if (e.key === 'Enter' && !e.isComposing) {
            e.preventDefault();
            all[current]?.act();
          }
        }}
      />
      <ul id="palette-list" role="listbox" aria-label={t('palette')} ref={box}>
        {all.length === 0 && (
          <li class="caps" role="presentation">
            {t('paletteNone')}
          </li>
        )}
        {sections.map((s) => [
          <li key={s.name} class="caps" role="presentation">
            {s.name}
          </li>,
          ...s.rows.map((r) => {
            const n = ++i;
            return (
              <li
                key={`${s.name} ${r.key}`}
                id={`palette-${n}`}
                role="option"
                aria-selected={n === current}
                onClick={r.act}
                onMouseMove={() => {
                  at.value = n;
                }}
              >
                <Icon name={r.icon} />
                <span class="clip">{r.label}</span>
                {r.about && <span class="faint clip">{r.about}</span>}
              </li>
            );
          }),
        ])}
      </ul>
    </Plain>
  );
}

/** Plain is a modal layer without head and foot. */
function Plain({
  class: name,
  label,
  close,
  children,
}: {
  class: string;
  label: string;
  close: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current!.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={name}
      aria-label={label}
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onClick={(e) => {
        if (e.target === e.currentTarget) close();
      }}
    >
      {children}
    </dialog>
  );
}
