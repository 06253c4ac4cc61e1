// What the list, the export and changes of all that match ask the platform for.
import type {Query} from '../../ui/list';

/** filtersOf are the query parameters of a list of users, without its order and pages. */
export function filtersOf(query: Query) {
  return {
    keyword: query.q || undefined,
    search_type: query.q ? ('generic' as const) : undefined,
    status: (query.filters.status || undefined) as '1' | undefined,
    locked: (query.filters.locked || undefined) as 'true' | undefined,
  };
}
