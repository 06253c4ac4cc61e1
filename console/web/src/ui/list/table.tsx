import {go, hrefQuery, param, setQuery} from '../../lib/router';
import {Icon} from '../icon';
import {t} from '../text';
import {rowHeight, type useWindow} from './rows';
import type {Column, ListProps} from './types';

export interface TableProps<T> {
  p: ListProps<T>;
  columns: Column<T>[];
  rows: T[];
  skeleton: boolean;
  busy: boolean;
  total?: number;
  view: ReturnType<typeof useWindow>;
  openParam: string;
  open: string;
  cursor: number;
  selected: Map<string, T>;
  toggle: (row: T) => void;
  all: (on: boolean) => void;
}

/** rowLink is where a row leads: to its panel, or to a page of its own. */
export function rowLink<T>(p: ListProps<T>, row: T): string {
  return p.rowHref?.(row) ?? hrefQuery({[p.openParam ?? 'open']: p.rowId(row)});
}

export function Table<T>(x: TableProps<T>) {
  const {p, columns, rows} = x;
  const [first, last] = x.view.range.value;
  const shown = rows.slice(first, last);
  const span = columns.length + (p.bulk ? 1 : 0);
  const after = Math.max(0, rows.length - first - shown.length);
  return (
    <table class={x.busy ? 'busy' : ''} aria-busy={x.busy} aria-rowcount={(x.total ?? rows.length) + 1}>
      <thead>
        <tr aria-rowindex={1}>
          {p.bulk && (
            <th class="pick" scope="col">
              <input
                type="checkbox"
                aria-label={t('selectAll')}
                checked={x.selected.size > 0 && x.selected.size === rows.length}
                onChange={(e) => x.all(e.currentTarget.checked)}
              />
            </th>
          )}
          {columns.map((c) => (
            <Header key={c.key} c={c} p={p} />
          ))}
        </tr>
      </thead>
      <tbody>
        {x.skeleton &&
          Array.from({length: 12}, (_, i) => (
            <tr key={i}>
              {Array.from({length: span}, (_, k) => (
                <td key={k}>
                  <span class="skeleton" style={{width: `${80 - ((i * 17 + k * 29) % 50)}%`}} />
                </td>
              ))}
            </tr>
          ))}
        {first > 0 && (
          <tr class="spacer" aria-hidden="true">
            <td colSpan={span} style={{height: `${Math.min(first, rows.length) * rowHeight}px`}} />
          </tr>
        )}
        {!x.skeleton &&
          shown.map((row, i) => {
            const id = p.rowId(row),
              at = first + i;
            return (
              <tr
                key={id}
                data-id={id}
                aria-rowindex={at + 2}
                aria-current={id === x.open || undefined}
                class={`item-row ${id === x.open ? 'current' : ''} ${at === x.cursor ? 'cursor' : ''}`}
                onClick={(e) => {
                  if ((e.target as Element).closest('a, button, input, label') || getSelection()?.toString()) return;
                  void go(rowLink(p, row));
                }}
              >
                {p.bulk && (
                  <td class="pick">
                    <input
                      type="checkbox"
                      aria-label={t('selectRow', {name: p.rowName(row)})}
                      checked={x.selected.has(id)}
                      onChange={() => x.toggle(row)}
                    />
                  </td>
                )}
                {columns.map((c, k) => (
                  <td key={c.key}>
                    {k === 0 ? (
                      <a class="open" href={rowLink(p, row)}>
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
        {after > 0 && (
          <tr class="spacer" aria-hidden="true">
            <td colSpan={span} style={{height: `${after * rowHeight}px`}} />
          </tr>
        )}
      </tbody>
    </table>
  );
}

function Header<T>({c, p}: {c: Column<T>; p: ListProps<T>}) {
  const [field, order] = (param('sort') || p.sort || '').split(/[[\]]/);
  const is = c.sort !== undefined && field === c.sort;
  const style = c.width ? {width: c.width} : undefined;
  if (!c.sort)
    return (
      <th scope="col" style={style}>
        {c.header}
      </th>
    );
  return (
    <th scope="col" style={style} aria-sort={!is ? 'none' : order === 'desc' ? 'descending' : 'ascending'}>
      <button
        type="button"
        title={t('sortBy', {name: c.header})}
        onClick={() => void setQuery({sort: `${c.sort}[${is && order !== 'desc' ? 'desc' : 'asc'}]`}, {replace: true})}
      >
        {c.header}
        {is && <Icon name={order === 'desc' ? 'down' : 'up'} size={12} />}
      </button>
    </th>
  );
}
