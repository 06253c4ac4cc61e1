// What a screen tells its list.
import type {ComponentChildren} from 'preact';
import type {IconName} from '../icon';

export interface Column<T> {
  key: string;
  header: string;
  cell: (row: T) => ComponentChildren;
  width?: string; // of the table's fixed layout: '30%', '140px'
  sort?: string; // the member that page_sort takes
  priority?: 1 | 2 | 3; // 3 goes first when the window gets narrow, 1 never
  optional?: boolean; // shown only when it is chosen
}

export interface Filter {
  param: string;
  label: string;
  options: FilterOption[];
  find?: (words: string, signal: AbortSignal) => Promise<FilterOption[]>; // where options are only the first ones
  typed?: (words: string) => boolean; // what is typed may be a value itself: an id that somebody has pasted
  shown?: (value: string) => string; // the label of a value that is not among the options
  value?: string; // where it is more than its parameter
  choose?: (value: string) => void;
}

export interface FilterOption {
  value: string;
  label: string;
  about?: string;
}

export interface Query {
  q: string;
  sort: string;
  filters: Record<string, string>;
}

/** Matching are all records of a query, loaded or not. */
export interface Matching {
  query: Query;
  total: number; // or more, where the list has only a lower bound
}

export interface Page<T> {
  items: T[] | null;
  total?: number;
  total_relation?: 'gte';
  next_page_token?: string;
}

export interface ListProps<T> {
  name: string; // of the screen: its columns and rows are remembered under it
  title: string;
  rowId: (row: T) => string;
  rowName: (row: T) => string; // for screen readers, and the link that opens the row
  columns: Column<T>[]; // the first one is the link
  load: (query: Query, pageToken: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
  filters?: Filter[];
  search?: string; // the placeholder; without it there is no search
  sort?: string; // the order when none is chosen
  empty: {icon: IconName; title: string; text: string; action?: ComponentChildren};
  actions?: ComponentChildren; // beside the title
  bulk?: (selected: T[], clear: () => void, all?: Matching) => ComponentChildren; // without it rows cannot be selected
  matching?: boolean; // bulk also takes all that match, beside selected rows
  openParam?: string;
  rowHref?: (row: T) => string; // where a row leads, if it has a page of its own and no panel
  kind?: string; // the list loads anew when changed(kind) is called
  header?: boolean; // false: the screen has a head of its own
}

export interface Rows<T> {
  key: string;
  items: T[];
  total?: number;
  more: boolean; // total is a lower bound
  next?: string;
  done: boolean;
}
