// The frame of a record beside its list.
import type {ComponentChildren} from 'preact';
import {useEffect, useId, useRef} from 'preact/hooks';
import {ago, dateTime} from '../../lib/format';
import {useKey} from '../../lib/keys';
import {useLate, useLoad} from '../../lib/load';
import {param, setQuery} from '../../lib/router';
import {Button, Failed, Id, Skeleton, Tabs, type Tab} from '../basics';
import {t} from '../text';

export interface PanelTab extends Tab {
  content: () => ComponentChildren;
}

/** Panel is the frame of a record beside its list; the URL says which record and which tab. */
export function Panel({
  title,
  subtitle,
  lead,
  tabs,
  actions,
  foot,
  openParam = 'open',
}: {
  title: string;
  subtitle?: ComponentChildren;
  lead?: ComponentChildren;
  tabs: PanelTab[];
  actions?: ComponentChildren;
  foot?: ComponentChildren;
  openParam?: string;
}) {
  const name = param('tab');
  const tab = tabs.find((x) => x.name === name) ?? tabs[0]!;
  const id = useId();
  const head = useRef<HTMLHeadingElement>(null);
  const panel = useRef<HTMLElement>(null);
  const close = () => {
    const inside = panel.current?.contains(document.activeElement);
    const row = document.querySelector<HTMLElement>('.item-row.current a.open');
    void setQuery({[openParam]: null, tab: null}).then(() => inside && row?.focus({preventScroll: true}));
  };
  useKey('Escape', close);
  useEffect(() => {
    // Who opens a row by the keyboard goes on in its panel; on a narrow screen the panel is all there is.
    const byKey = document.activeElement?.matches('.item-row a.open:focus-visible');
    if (byKey || innerWidth <= 760) head.current?.focus();
  }, []);
  return (
    <aside class="panel" aria-labelledby={id} ref={panel}>
      <header class="panel-head">
        <div class="row">
          {lead}
          <div class="grow">
            <h2 id={id} ref={head} tabIndex={-1} title={title}>
              {title}
            </h2>
            {subtitle && <div class="muted clip">{subtitle}</div>}
          </div>
          {actions}
          <Button kind="ghost" icon="x" label={t('close')} onClick={close} />
        </div>
      </header>
      {tabs.length > 1 && (
        <Tabs
          tabs={tabs}
          current={tab.name}
          label={title}
          choose={(n) => void setQuery({tab: n === tabs[0]!.name ? null : n}, {replace: true, force: true})}
        />
      )}
      <div
        class="panel-body"
        role={tabs.length > 1 ? 'tabpanel' : undefined}
        aria-label={tab.label}
        tabIndex={tabs.length > 1 ? 0 : -1}
      >
        {tab.content()}
      </div>
      {tab === tabs[0] && foot}
    </aside>
  );
}

/** PanelLoad loads a panel's record, with the panel's own states. */
export function PanelLoad<T>({
  id,
  load,
  children,
  openParam = 'open',
}: {
  id: string;
  load: (signal: AbortSignal) => Promise<T>;
  children: (value: T, again: () => void) => ComponentChildren;
  openParam?: string;
}) {
  const {state, again} = useLoad(id, load);
  const {value, error, busy} = state.value;
  const late = useLate(busy && value === undefined);
  const close = () => void setQuery({[openParam]: null, tab: null});
  useKey('Escape', () => (value === undefined ? close() : false));
  const waiting = useRef<HTMLElement>(null);
  const within = value !== undefined && !!waiting.current?.contains(document.activeElement);
  useEffect(() => {
    // Who was in the panel while it was loaded stays in it.
    if (within) document.querySelector<HTMLElement>('.panel h2')?.focus();
  }, [within]);
  if (value !== undefined) return <>{children(value, again)}</>;
  return (
    <aside class="panel" aria-busy={busy} ref={waiting}>
      <header class="panel-head">
        <div class="row">
          <span class="grow" />
          <Button kind="ghost" icon="x" label={t('close')} onClick={close} />
        </div>
      </header>
      <div class="panel-body">{error ? <Failed error={error} again={again} /> : late && <Skeleton lines={8} />}</div>
    </aside>
  );
}

/** recordFacts are what every record has. */
export function recordFacts(r: {
  id: string;
  time_created: string;
  time_modified: string;
  version: number;
}): [string, ComponentChildren][] {
  return [
    [t('id'), <Id>{r.id}</Id>],
    [t('created'), dateTime(r.time_created)],
    [t('modified'), <span title={dateTime(r.time_modified)}>{ago(r.time_modified)}</span>],
    [t('version'), <span class="num">{r.version}</span>],
  ];
}

/** Facts is a list of labels and values that cannot be edited. */
export function Facts({facts}: {facts: [string, ComponentChildren][]}) {
  return (
    <dl class="facts">
      {facts
        .filter(([, v]) => v !== '' && v !== null && v !== undefined)
        .map(([k, v]) => [<dt key={k}>{k}</dt>, <dd key={k + '.'}>{v}</dd>])}
    </dl>
  );
}

/** Details are facts for those who look for the cause of something: ids, codes. They are folded. */
export function Details({facts}: {facts: [string, ComponentChildren][]}) {
  return (
    <details class="fold-out">
      <summary>{t('details')}</summary>
      <Facts facts={facts} />
    </details>
  );
}
