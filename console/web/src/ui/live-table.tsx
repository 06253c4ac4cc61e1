// The rows of a stream: the newest on top, drawn in a window. While somebody reads further down, the rows stay where
// they are as others come in above.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {useKey} from '../lib/keys';
import {hrefQuery, param, setQuery} from '../lib/router';
import type {Column} from './list';

const rowHeight = 40;

export interface LiveTableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowId: (row: T) => string;
  tone?: (row: T) => string | undefined; // a class of the row
  note?: (row: T) => ComponentChildren | undefined; // a row that is not a record: a sentence over its whole width
  busy?: boolean; // the rows are those of another filter
  skeleton?: boolean;
  total?: number;
  blank?: ComponentChildren; // instead of rows
  foot?: ComponentChildren;
  onEnd?: () => void; // somebody has come near the last row
}

export function LiveTable<T>(p: LiveTableProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const range = useSignal<[number, number]>([0, 40]);
  const width = useSignal(innerWidth);
  const cursor = useSignal('');
  const anchor = useRef<{id: string; at: number} | undefined>(undefined);
  const open = param('open');
  const {rows} = p;

  const scrolled = () => {
    const el = box.current;
    if (!el) return;
    const first = Math.max(0, Math.floor(el.scrollTop / rowHeight) - 10);
    const last = Math.ceil((el.scrollTop + el.clientHeight) / rowHeight) + 10;
    if (range.value[0] !== first || range.value[1] !== last) range.value = [first, last];
    const at = Math.floor(el.scrollTop / rowHeight);
    anchor.current = el.scrollTop > 4 && rows[at] ? {id: p.rowId(rows[at]!), at} : undefined;
    if (last >= rows.length) p.onEnd?.();
  };
  useLayoutEffect(() => {
    const was = anchor.current;
    if (was && box.current) {
      const at = rows.findIndex((r) => p.rowId(r) === was.id);
      if (at > was.at) box.current.scrollTop += (at - was.at) * rowHeight;
    }
    scrolled();
  }, [rows]);
  useEffect(() => {
    const watch = new ResizeObserver(() => {
      width.value = box.current?.clientWidth ?? innerWidth;
      scrolled();
    });
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);

  const records = rows.filter((r) => p.note?.(r) === undefined);
  const move = (by: number) => {
    const at = records.findIndex((r) => p.rowId(r) === (cursor.value || open));
    const row = records[Math.max(0, Math.min(records.length - 1, at < 0 ? 0 : at + by))],
      el = box.current;
    if (!row || !el) return;
    cursor.value = p.rowId(row);
    const top = rows.indexOf(row) * rowHeight;
    if (top < el.scrollTop) el.scrollTop = top;
    else if (top + rowHeight + 44 > el.scrollTop + el.clientHeight)
      el.scrollTop = top + rowHeight + 44 - el.clientHeight;
    if (open) void setQuery({open: cursor.value}, {replace: true});
    else requestAnimationFrame(() => el.querySelector<HTMLElement>('tr.cursor a.open')?.focus({preventScroll: true}));
  };
  useKey('j', () => move(1));
  useKey('k', () => move(-1));
  useKey('Enter', (e) => {
    if (!cursor.value || (e.target as HTMLElement).closest('a, button, input')) return false;
    void setQuery({open: cursor.value});
  });

  const room = width.value < 540 ? 1 : width.value < 860 ? 2 : 3;
  const columns = p.columns.filter((c) => (c.priority ?? 1) <= room);
  const [first, last] = range.value;
  const shown = rows.slice(first, last),
    after = Math.max(0, rows.length - first - shown.length);
  return (
    <div class="list live-list" ref={box} tabIndex={-1} onScroll={scrolled}>
      {rows.length > 0 || p.skeleton ? (
        <table
          class={p.busy ? 'busy' : ''}
          aria-busy={p.busy}
          aria-label={p.label}
          aria-rowcount={(p.total ?? rows.length) + 1}
        >
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((c) => (
                <th key={c.key} scope="col" style={c.width ? {width: c.width} : undefined}>
                  {c.header}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {p.skeleton &&
              rows.length === 0 &&
              Array.from({length: 12}, (_, i) => (
                <tr key={i}>
                  {columns.map((c, k) => (
                    <td key={c.key}>
                      <span class="skeleton" style={{width: `${80 - ((i * 17 + k * 29) % 50)}%`}} />
                    </td>
                  ))}
                </tr>
              ))}
            {first > 0 && (
              <Spacer key="before" span={columns.length} height={Math.min(first, rows.length) * rowHeight} />
            )}
            {shown.map((row, i) => {
              const id = p.rowId(row),
                note = p.note?.(row);
              if (note !== undefined)
                return (
                  <tr key={id} class="gap-row" aria-rowindex={first + i + 2}>
                    <td colSpan={columns.length}>{note}</td>
                  </tr>
                );
              return (
                <tr
                  key={id}
                  aria-rowindex={first + i + 2}
                  aria-current={id === open || undefined}
                  class={['item-row', id === open && 'current', id === cursor.value && 'cursor', p.tone?.(row)]
                    .filter(Boolean)
                    .join(' ')}
                  onClick={(e) => {
                    if ((e.target as Element).closest('a, button, input') || getSelection()?.toString()) return;
                    void setQuery({open: id, tab: null});
                  }}
                >
                  {columns.map((c, k) => (
                    <td key={c.key}>
                      {k === 0 ? (
                        <a class="open" href={hrefQuery({open: id, tab: null})}>
                          {c.cell(row)}
                        </a>
                      ) : (
                        c.cell(row)
                      )}
                    </td>
                  ))}
                </tr>
              );
            })}
            {after > 0 && <Spacer key="after" span={columns.length} height={after * rowHeight} />}
          </tbody>
        </table>
      ) : (
        p.blank
      )}
      {p.foot && (
        <div class="list-foot" role="status">
          {p.foot}
        </div>
      )}
    </div>
  );
}

function Spacer({span, height}: {span: number; height: number}) {
  return (
    <tr class="spacer" aria-hidden="true">
      <td colSpan={span} style={{height: `${height}px`}} />
    </tr>
  );
}
