import {listFunctions, type Function as Fn} from '@idplatform/sdk';
import {call} from '../../lib/api';
import type {Query} from '../../ui/list';

export function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  const {runtime, status} = query.filters;
  return call(
    listFunctions({
      signal,
      query: {
        keyword: query.q || undefined,
        runtime: (runtime || undefined) as Fn['runtime'] | undefined,
        status: (status || undefined) as Fn['status'] | undefined,
        page_sort: query.sort || undefined,
        page_size: 100,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}
