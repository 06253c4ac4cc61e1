// The rows of a list: pages that are loaded one after another, and which of them are drawn.
import {useSignal} from '@preact/signals';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import {aborted, asProblem, type ApiError} from '../../lib/api';
import {changes} from '../../lib/load';
import {entry, param, place} from '../../lib/router';
import type {ListProps, Page, Query, Rows} from './types';

// Rows of lists that were left, by name and history entry, so that Back shows them at once and where they were.
export const left = new Map<string, {rows: Rows<unknown>; top: number; row: string}>();
const mostLeft = 20;

/** leave keeps the rows of a list that is left; those left longest ago are forgotten. */
export function leave(name: string, what: {rows: Rows<unknown>; top: number; row: string}): void {
  left.delete(name);
  left.set(name, what);
  for (const oldest of left.keys()) {
    if (left.size <= mostLeft) return;
    left.delete(oldest);
  }
}
export const rowHeight = 40;
const mostAgain = 1000; // rows

export function useQuery<T>(p: ListProps<T>): Query {
  void place.value; // the URL is the state
  return {
    q: param('q'),
    sort: param('sort') || p.sort || '',
    filters: Object.fromEntries((p.filters ?? []).map((f) => [f.param, param(f.param)])),
  };
}

/** useRows loads page after page. Old rows stay, dimmed, until those of another query are there. */
export function useRows<T>(p: ListProps<T>, query: Query, key: string) {
  const was = useMemo(() => left.get(`${p.name} ${entry.value}`)?.rows as Rows<T> | undefined, []);
  const rows = useSignal<Rows<T>>(was?.key === key ? was : {key: '', items: [], more: false, done: true});
  const busy = useSignal(true);
  const error = useSignal<ApiError | undefined>(undefined);
  const turn = useSignal(0);
  const abort = useRef<AbortController | undefined>(undefined);
  const loading = useRef(false);
  const fetchPage = async (from: Rows<T> | undefined) => {
    const controller = new AbortController();
    abort.current = controller;
    loading.current = true;
    // What is shown already comes anew as a whole, so that nobody's place moves.
    const shown = from || rows.value.key !== key ? 0 : Math.min(rows.value.items.length, mostAgain);
    try {
      let now = from;
      do {
        const page: Page<T> = await p.load(query, now?.next, controller.signal);
        if (controller.signal.aborted) return;
        now = {
          key,
          items: [...(now?.items ?? []), ...(page.items ?? [])],
          next: page.next_page_token,
          done: !page.next_page_token,
          total: page.total ?? now?.total,
          more: now ? now.more : page.total_relation === 'gte',
        };
      } while (!now.done && now.items.length < shown);
      rows.value = now;
      error.value = undefined;
    } catch (e) {
      if (controller.signal.aborted || aborted(e)) return;
      error.value = asProblem(e);
    } finally {
      if (abort.current === controller) {
        busy.value = false;
        loading.current = false;
      }
    }
  };
  const change = p.kind ? (changes.value[p.kind] ?? 0) : 0;
  useEffect(() => {
    busy.value = true;
    void fetchPage(undefined);
    return () => abort.current?.abort();
  }, [key, turn.value, change]);
  return {
    rows,
    busy,
    error,
    again: () => {
      turn.value++;
    },
    loadMore: () => {
      if (!loading.current && !rows.value.done && rows.value.key === key && !error.value) void fetchPage(rows.value);
    },
  };
}

/** useWindow says which rows are drawn: those on the screen, and some around them. */
export function useWindow(box: {current: HTMLDivElement | null}, count: number, loadMore: () => void) {
  const range = useSignal<[number, number]>([0, 40]);
  const width = useSignal(innerWidth);
  const scrolled = () => {
    const el = box.current;
    if (!el) return;
    const first = Math.max(0, Math.floor(el.scrollTop / rowHeight) - 10);
    const last = Math.ceil((el.scrollTop + el.clientHeight) / rowHeight) + 10;
    if (range.value[0] !== first || range.value[1] !== last) range.value = [first, last];
    if (last >= count) loadMore();
  };
  useEffect(scrolled, [count]);
  useEffect(() => {
    const watch = new ResizeObserver(() => {
      width.value = box.current?.clientWidth ?? innerWidth;
      scrolled();
    });
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return {
    range,
    width,
    scrolled,
    show: (i: number) => {
      const el = box.current;
      if (!el) return;
      const top = i * rowHeight,
        bottom = top + rowHeight + 44;
      if (top < el.scrollTop) el.scrollTop = top;
      else if (bottom > el.scrollTop + el.clientHeight) el.scrollTop = bottom - el.clientHeight;
    },
  };
}
