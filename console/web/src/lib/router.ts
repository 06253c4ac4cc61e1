// The URL is the state: /console/{tenant}/{screen}/{rest}?query. Screens read it from `place` and change it with
// `go` and `setQuery`; there is no other place for what a person has chosen on a screen.
import {computed, signal} from '@preact/signals';

export interface Place {
  tenant: string; // '' at the sign-in
  signIn: boolean;
  screen: string;
  rest: string[]; // the segments after the screen
  query: URLSearchParams;
  hash: string;
}

export const root = '/console';

function read(): Place {
  const [, , tenant = '', screen = '', ...rest] = location.pathname.split('/').map(decodeURIComponent);
  return {
    tenant: tenantOf(location.pathname),
    signIn: tenant === 'sign-in',
    screen,
    rest,
    query: new URLSearchParams(location.search),
    hash: location.hash,
  };
}

function tenantOf(path: string): string {
  const tenant = decodeURIComponent(path.split('/')[2] ?? '');
  return ['sign-in', '~'].includes(tenant) ? '' : tenant.replace(/^=/, '');
}

// Another tenant begins with a page loaded anew: work under way, undo and lists are of the tenant in which they began.
function isElsewhere(path: string): boolean {
  const tenant = tenantOf(path);
  return tenant !== '' && place.value.tenant !== '' && tenant !== place.value.tenant;
}

export const place = signal<Place>(read());

/** entry identifies an entry of the history, so that lists can restore their place when a person goes back to it. */
export const entry = signal<number>(history.state?.entry ?? 0);
let last: number = entry.value;
if (history.state?.entry === undefined) history.replaceState({entry: 0}, '');

/** One query parameter as a signal-like getter. */
export function param(name: string): string {
  return place.value.query.get(name) ?? '';
}

export const screenName = computed(() => place.value.screen);

type Values = Record<string, string | number | null | undefined>;

function withQuery(query: URLSearchParams, values: Values): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === '') next.delete(name);
    else next.set(name, String(value));
  }
  const text = next.toString();
  return text ? `?${text}` : '';
}

// Calls are below /console/api, and the sign-in has a page: tenants of these names have another first segment, which no
// other tenant can have.
function tenantSegment(tenant: string): string {
  return ['api', 'sign-in'].includes(tenant) ? `=${tenant}` : encodeURIComponent(tenant);
}

/** href of a screen, in the present tenant unless another is given. */
export function href(screen: string, rest: (string | number)[] = [], values: Values = {}, tenant?: string): string {
  const path = [root, tenantSegment(tenant ?? place.value.tenant), screen, ...rest.map(String)]
    .map((s, i) => (i < 2 ? s : encodeURIComponent(s)))
    .join('/');
  return path + withQuery(new URLSearchParams(), values);
}

/** href of the present screen with some query parameters changed; null removes one. */
export function hrefQuery(values: Values): string {
  return location.pathname + withQuery(place.value.query, values);
}

// Whoever has unsaved work says so here; leave asks the person.
const guards = new Set<() => boolean>();
let ask: () => Promise<boolean> = async () => true;

export function guard(dirty: () => boolean): () => void {
  guards.add(dirty);
  return () => guards.delete(dirty);
}

export function setAsk(f: () => Promise<boolean>): void {
  ask = f;
}

export function unsaved(): boolean {
  return [...guards].some((dirty) => dirty());
}

const works = new Set<Promise<unknown>>();

/**
 * underWay is a save that is not answered yet: who leaves meanwhile waits for it, and is asked about what it leaves.
 */
export function underWay<T>(work: Promise<T>): Promise<T> {
  works.add(work);
  const over = () => works.delete(work);
  work.then(over, over);
  return work;
}

/** mayLeave is true if nothing is unsaved, or the person lets it go. */
export async function mayLeave(): Promise<boolean> {
  if (unsaved() && works.size) {
    const patience = new Promise((done) => setTimeout(done, 10_000));
    await Promise.race([Promise.allSettled(works), patience]);
  }
  return !unsaved() || (await ask());
}

export interface GoOptions {
  replace?: boolean;
  force?: boolean; // do not ask about unsaved work
}

export async function go(url: string, {replace = false, force = false}: GoOptions = {}): Promise<void> {
  if (!force && !(await mayLeave())) return;
  if (isElsewhere(new URL(url, location.href).pathname)) {
    guards.clear(); // the person was asked
    return replace ? location.replace(url) : location.assign(url);
  }
  if (replace) history.replaceState({entry: entry.value}, '', url);
  else {
    last = entry.value + 1;
    history.pushState({entry: last}, '', url);
    entry.value = last;
  }
  place.value = read();
}

/** setQuery changes query parameters of the present screen. */
export function setQuery(values: Values, options: GoOptions = {}): Promise<void> {
  return go(hrefQuery(values), options);
}

let returning = false;

addEventListener('popstate', async (event) => {
  const to: number = event.state?.entry ?? 0;
  if (returning) {
    returning = false;
    return;
  }
  if (unsaved()) {
    const delta = to - entry.value;
    returning = true;
    history.go(-delta); // back to where the unsaved work is
    if (!(await mayLeave())) return;
    const all = [...guards];
    guards.clear();
    addEventListener('popstate', () => all.forEach((g) => guards.add(g)), {once: true});
    history.go(delta);
    return;
  }
  if (isElsewhere(location.pathname)) return location.reload();
  entry.value = last = to;
  place.value = read();
});

addEventListener('beforeunload', (event) => {
  if (unsaved()) event.preventDefault();
});

// Links within the console change the place without loading the page again.
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const a = (event.target as Element).closest?.('a[href]') as HTMLAnchorElement | null;
  if (!a || a.target || a.download || a.origin !== location.origin || !a.pathname.startsWith(root + '/')) return;
  if (a.pathname.startsWith(root + '/api/') || a.pathname.startsWith(root + '/~/')) return;
  event.preventDefault();
  void go(a.pathname + a.search + a.hash);
});
