// The list of every screen: search while typing, filter chips, chosen columns, a true total, rows in a window that load
// as one scrolls, selection, and the keyboard. What is chosen is in the URL: q, sort, open, and a parameter for each
// filter.
import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {useKey} from '../../lib/keys';
import {useLate} from '../../lib/load';
import {entry, go, param, setQuery} from '../../lib/router';
import {Blank, Button, Failed} from '../basics';
import {t} from '../text';
import {BulkBar, clearSelection, type Selection} from './bulk';
import {leave, left, useQuery, useRows, useWindow} from './rows';
import {Table, rowLink} from './table';
import {Chips, ColumnsMenu, Search, useColumns} from './tools';
import type {ListProps, Rows} from './types';

export {createdColumn, modifiedColumn, statusFilter} from './columns';
export {Chips, Search, fitting} from './tools';
export type {Column, Filter, FilterOption, ListProps, Matching, Page, Query} from './types';

export function List<T>(p: ListProps<T>) {
  const openParam = p.openParam ?? 'open';
  const query = useQuery(p);
  const key = JSON.stringify(query);
  const list = useRows(p, query, key);
  const box = useRef<HTMLDivElement>(null);
  const row = useRef(''); // which had the focus last
  const searchBox = useRef<HTMLInputElement>(null);
  const selection: Selection<T> = {rows: useSignal(new Map()), everything: useSignal(false)};
  const cursor = useSignal(-1);
  const columns = useColumns(p);
  const {items} = list.rows.value;
  const late = useLate(list.busy.value && items.length === 0);
  const filtered = query.q !== '' || Object.values(query.filters).some(Boolean);
  const open = param(openParam);
  const view = useWindow(box, items.length, list.loadMore);
  const room = view.width.value < 540 ? 1 : view.width.value < 860 ? 2 : 3; // columns of a higher priority number go
  const selected = selection.everything.value ? rowsById(p, items) : selection.rows.value;
  const fitting = columns.shown.filter((c) => (c.priority ?? 1) <= room);

  useEffect(() => {
    clearSelection(selection);
    cursor.value = -1;
  }, [key]);
  useEffect(() => {
    const was = left.get(`${p.name} ${entry.value}`);
    if (!was || !box.current) return;
    box.current.scrollTop = was.top;
    view.scrolled();
    row.current = was.row;
    requestAnimationFrame(() =>
      box.current
        ?.querySelector<HTMLElement>(`tr[data-id="${CSS.escape(was.row)}"] a.open`)
        ?.focus({preventScroll: true}),
    );
  }, []);
  const keep = () =>
    leave(`${p.name} ${entry.value}`, {rows: list.rows.value, top: box.current?.scrollTop ?? 0, row: row.current});
  useEffect(() => void keep(), [entry.value, list.rows.value]);
  const move = (by: number) => {
    const at = cursor.value >= 0 ? cursor.value : items.findIndex((r) => p.rowId(r) === open);
    cursor.value = Math.max(0, Math.min(items.length - 1, at + by));
    view.show(cursor.value);
    if (open && items[cursor.value]) void setQuery({[openParam]: p.rowId(items[cursor.value]!)}, {replace: true});
    else
      requestAnimationFrame(() =>
        box.current?.querySelector<HTMLElement>('tr.cursor a.open')?.focus({preventScroll: true}),
      );
  };
  useKey('/', () => searchBox.current?.focus());
  useKey('j', () => move(1));
  useKey('k', () => move(-1));
  useKey('x', () => {
    const row = items[cursor.value];
    if (!p.bulk || !row) return false;
    toggle(row);
  });
  useKey('Enter', (e) => {
    const row = items[cursor.value];
    if (!row || (e.target as HTMLElement).closest('a, button, input')) return false;
    void go(rowLink(p, row));
  });
  const toggle = (row: T) => {
    const next = new Map(selected),
      id = p.rowId(row);
    if (!next.delete(id)) next.set(id, row);
    selection.rows.value = next;
    selection.everything.value = false;
  };
  const clear = () =>
    setQuery({q: null, ...Object.fromEntries((p.filters ?? []).map((f) => [f.param, null]))}, {replace: true});
  return (
    <section class="screen" aria-label={p.title}>
      {p.header !== false && (
        <header class="screen-head">
          <h1>
            {p.title}
            <Count rows={list.rows.value} />
          </h1>
          <div class="actions">{p.actions}</div>
        </header>
      )}
      <div class="tools">
        {p.search !== undefined && <Search placeholder={p.search} box={searchBox} />}
        <div class="row wrap grow">
          <Chips filters={p.filters ?? []} />
          {filtered && items.length > 0 && (
            <Button kind="ghost" small onClick={() => void clear()}>
              {t('clearFilters')}
            </Button>
          )}
          <span class="grow" />
          <ColumnsMenu p={p} columns={columns} />
        </div>
      </div>
      {list.error.value && (
        <div class="tools">
          <div class="grow">
            <Failed error={list.error.value} again={list.again} />
          </div>
        </div>
      )}
      <div
        class="list"
        ref={box}
        tabIndex={-1}
        onScroll={() => {
          view.scrolled();
          keep();
        }}
        onFocusCapture={(e) => {
          row.current = (e.target as Element).closest('tr')?.dataset.id ?? '';
          keep();
        }}
      >
        {items.length > 0 || late ? (
          <Table
            p={p}
            columns={fitting}
            rows={items}
            skeleton={late}
            busy={list.busy.value && list.rows.value.key !== key}
            view={view}
            openParam={openParam}
            open={open}
            cursor={cursor.value}
            selected={selected}
            toggle={toggle}
            total={list.rows.value.total}
            all={(on) => {
              if (on) selection.rows.value = rowsById(p, items);
              else clearSelection(selection);
            }}
          />
        ) : (
          !list.busy.value &&
          !list.error.value &&
          (filtered ? (
            <Blank
              icon="search"
              title={t('nothingMatches')}
              action={<Button onClick={() => void clear()}>{t('clearFilters')}</Button>}
            >
              {t('nothingMatchesHint')}
            </Blank>
          ) : (
            <Blank icon={p.empty.icon} title={p.empty.title} action={p.empty.action}>
              {p.empty.text}
            </Blank>
          ))
        )}
        {items.length > 0 && !list.rows.value.done && (
          <div class="list-foot">
            <span class="spin" aria-hidden="true" />
            {t('loadingMore')}
          </div>
        )}
        <BulkBar p={p} selection={selection} query={query} rows={list.rows.value} />
      </div>
    </section>
  );
}

function rowsById<T>(p: ListProps<T>, rows: T[]): Map<string, T> {
  return new Map(rows.map((r) => [p.rowId(r), r]));
}

function Count<T>({rows}: {rows: Rows<T>}) {
  if (rows.total === undefined) return null;
  const text = rows.more ? t('atLeast', {n: rows.total}) : t('showing', {n: rows.total});
  return (
    <span class="count num" role="status">
      {text}
    </span>
  );
}
