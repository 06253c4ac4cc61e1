// What can be done with the selected rows, or with all that match.
import type {Signal} from '@preact/signals';
import {Button} from '../basics';
import {t} from '../text';
import type {ListProps, Query, Rows} from './types';

export interface Selection<T> {
  rows: Signal<Map<string, T>>;
  everything: Signal<boolean>; // all that match, loaded or not
}

/** clearSelection selects nothing. */
export function clearSelection<T>(s: Selection<T>): void {
  s.rows.value = new Map();
  s.everything.value = false;
}

export function BulkBar<T>({
  p,
  selection: s,
  query,
  rows,
}: {
  p: ListProps<T>;
  selection: Selection<T>;
  query: Query;
  rows: Rows<T>;
}) {
  const n = s.rows.value.size,
    total = rows.total ?? rows.items.length;
  if (!p.bulk || n === 0) return null;
  const all = s.everything.value;
  const count = rows.more ? 'selectedAtLeast' : 'selectedAll';
  const label = all ? t(count, {n: total}) : t('selected', {n});
  return (
    <div class="bulk" role="region" aria-label={label}>
      <strong class="num" role="status">
        {label}
      </strong>
      {p.matching && !all && total > n && (
        <Button
          small
          kind="ghost"
          onClick={() => {
            s.everything.value = true;
          }}
        >
          {t(rows.more ? 'selectMatchingAtLeast' : 'selectMatching', {n: total})}
        </Button>
      )}
      {p.bulk([...s.rows.value.values()], () => clearSelection(s), all ? {query, total} : undefined)}
      <Button kind="ghost" small icon="x" label={t('clearSelection')} onClick={() => clearSelection(s)} />
    </div>
  );
}
