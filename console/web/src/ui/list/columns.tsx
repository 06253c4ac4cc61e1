// The columns and filters that most lists have.
import {ago, date} from '../../lib/format';
import {t} from '../text';
import type {Column, Filter} from './types';

/** modifiedColumn says how long ago a record was changed. */
export function modifiedColumn(more?: Partial<Column<unknown>>): Column<{time_modified: string}> {
  return {
    key: 'modified',
    header: t('modified'),
    cell: (r) => <span class="muted">{ago(r.time_modified)}</span>,
    width: '142px',
    ...more,
  };
}

/** createdColumn is the day a record was made, for those who choose the column. */
export function createdColumn(more?: Partial<Column<unknown>>): Column<{time_created: string}> {
  return {
    key: 'created',
    header: t('created'),
    cell: (r) => date(r.time_created),
    width: '130px',
    priority: 3,
    optional: true,
    ...more,
  };
}

/** statusFilter is for records that can be disabled. */
export function statusFilter(): Filter {
  return {
    param: 'status',
    label: t('status'),
    options: [
      {value: '1', label: t('enabled')},
      {value: '0', label: t('disabled')},
    ],
  };
}
