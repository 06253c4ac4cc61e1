/** Page is one page of a list. */
export interface Page<T> {
  items: T[] | null;
  next_page_token?: string;
}

// Each list has options and items of its own: both types are read from its function.
type List = (options: any) => Promise<{data: Page<any> | undefined}>;
type ItemOf<L extends List> = NonNullable<NonNullable<Awaited<ReturnType<L>>['data']>['items']>[number];

const largestPage = 200;

/**
 * pages walks all pages of a list by its page tokens: nothing is skipped or repeated while others write. A refusal is
 * thrown as a ProblemError.
 *
 *   for await (const user of pages(listUsers, {client, query: {keyword: 'li'}})) …
 */
export async function* pages<L extends List>(
  list: L, options: NonNullable<Parameters<L>[0]>,
): AsyncGenerator<ItemOf<L>, void, undefined> {
  let token: string | undefined;
  do {
    const query = {page_size: largestPage, count: 'false', ...options.query, ...(token ? {page_token: token} : {})};
    if (token) delete query.page_num; // the token says where the page begins
    const {data} = await list({...options, query, throwOnError: true});
    yield* data?.items ?? [];
    token = data?.next_page_token;
  } while (token);
}
