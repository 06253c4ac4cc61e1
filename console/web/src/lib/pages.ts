// Lists that are read page by page.
import {useSignal} from '@preact/signals';
import {useLoad} from './load';

interface PageOf<T> {
  items: T[] | null;
  next_page_token?: string;
}

/** usePaged loads the first page of a list; next adds one more. */
export function usePaged<T>(
  key: string,
  load: (pageToken: string | undefined, signal: AbortSignal) => Promise<PageOf<T>>,
) {
  const pages = useSignal(1);
  const {state, again} = useLoad(`${key} ${pages.value}`, async (signal) => {
    const items: T[] = [];
    let token: string | undefined;
    for (let n = 0; n < pages.value && (n === 0 || token); n++) {
      const page = await load(token, signal);
      items.push(...(page.items ?? []));
      token = page.next_page_token;
    }
    return {items, more: !!token};
  });
  const next = () => {
    pages.value++;
  };
  return {state, again, next};
}

type Load<T> = (pageToken: string | undefined) => Promise<PageOf<T>>;

/** allPages returns every record of a list that is known to be short. */
export async function allPages<T>(load: Load<T>): Promise<T[]> {
  const all: T[] = [];
  let token: string | undefined;
  do {
    const page = await load(token);
    all.push(...(page.items ?? []));
    token = page.next_page_token;
  } while (token);
  return all;
}
