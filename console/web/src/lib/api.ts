// The way to the API. All calls go through the generated SDK with this module's client, which names the screen to the
// audit log, keeps the tenant of the URL, and repeats what may be repeated.
//
//   const users = await call(listUsers({client, query: {keyword}, signal}));
import {client} from '../../../../sdk/typescript/src/client.gen';
import {parse} from './json';
import {place} from './router';
import {reauthenticate, renew} from './session';
import {Held, answered, seen} from './writes';

export {client};

/** Problem is the document that every refused call has (RFC 9457). */
export interface Problem {
  status: number;
  code: string;
  title?: string;
  detail?: string;
  request_id?: string;
  next?: string; // of the feed of events: the cursor with which it can continue
  errors?: {location: string; message: string; count?: number}[];
}

export class ApiError extends Error {
  constructor(
    readonly problem: Problem,
    readonly response?: Response,
  ) {
    super(problem.detail ?? problem.code);
  }

  /** Seconds after which another attempt makes sense; 0: none was told. */
  get retryAfter(): number {
    return Number(this.response?.headers.get('Retry-After')) || 0;
  }
}

/** notice is told when a call is repeated by itself, so that nothing happens silently. */
export let notice: (what: 'repeated') => void = () => {};
export function setNotice(f: typeof notice): void {
  notice = f;
}

async function fetchAgain(input: Request | URL | string, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const spare = request.clone();
  let response = await fetch(request);
  if (response.status === 401) response = await signedInAgain(response, spare);
  if (response.status === 502 && (request.method === 'GET' || request.headers.has('Idempotency-Key'))) {
    // The outcome is not known. With the same key the call is carried out once in any case.
    notice('repeated');
    response = await fetch(spare);
  }
  return response;
}

/** signedInAgain repeats a refused call: with another token of the issuer, or after a sign-in over the page. */
async function signedInAgain(refused: Response, request: Request): Promise<Response> {
  let response = refused;
  if (!(await isTooOld(response))) {
    const renewal = await renew();
    if (renewal.status >= 500) return renewal; // the issuer is away: a sign-in would not help
    if (renewal.ok) response = await fetch(request.clone());
  }
  for (let times = 0; times < 2 && response.status === 401; times++) {
    if (!(await reauthenticate((await isTooOld(response)) ? 'old' : 'ended'))) return response;
    response = await fetch(request.clone());
  }
  return response;
}

async function isTooOld(response: Response): Promise<boolean> {
  const problem: unknown = await response
    .clone()
    .json()
    .catch(() => undefined);
  return response.status === 401 && isProblem(problem) && problem.code === 'sign_in_too_old';
}

// When the person last did something, and how long what follows is theirs.
let input = performance.now();
const attention = 60_000;
for (const type of ['pointerdown', 'pointermove', 'keydown', 'wheel']) {
  addEventListener(type, () => (input = performance.now()), {capture: true, passive: true});
}

// Answers are read as text, so that numbers stay as they are written; see parse.
client.setConfig({baseUrl: '/console/api', fetch: fetchAgain as typeof fetch, parseAs: 'text'});
client.interceptors.request.use((request, options) => {
  request.headers.set('X-Payload-Origin', `console/${place.value.screen || 'shell'}`);
  // Also for the session's own tenant: another tab may have signed in to another one since, and is refused then.
  if (place.value.tenant) request.headers.set('X-Tenant-Id', place.value.tenant);
  // A screen that asks again and again keeps no session alive: only the person does.
  if (performance.now() - input > attention) request.headers.set('X-Console-Background', '1');
  if (request.method === 'POST' && !request.headers.has('Idempotency-Key')) {
    request.headers.set('Idempotency-Key', crypto.randomUUID());
  }
  seen(request, options);
  return request;
});
client.interceptors.response.use((response, request) => {
  answered(request, response);
  return response;
});

/**
 * run is the header of the first call of a run of deletes: how many records it is of in all. Above 100, the console
 * wants a fresh sign-in before it begins.
 */
export const run = (records: number) => ({'X-Console-Run': String(records)});

export interface Answer<T> {
  data: T;
  etag: string;
  response: Response;
}

type Sent<T> = Promise<{data?: T; error?: unknown; response?: Response}>;

/** full waits for a call of the SDK, and returns the body with the ETag; a refusal becomes an ApiError. */
export async function full<T>(sent: Sent<T>): Promise<Answer<T>> {
  const {data, error, response} = await sent.catch((e: unknown) => {
    if (aborted(e) || e instanceof Held) throw e;
    throw new ApiError({status: 0, code: 'unreachable'}); // the answer broke off on the way
  });
  if (!response) {
    if (aborted(error) || error instanceof Held) throw error;
    throw new ApiError({status: 0, code: 'unreachable'});
  }
  if (response.ok) {
    const text = typeof data === 'string' && /\bjson\b/.test(response.headers.get('Content-Type') ?? '');
    return {data: (text ? parse(data || '{}') : data) as T, etag: response.headers.get('ETag') ?? '', response};
  }
  const problem: Problem = isProblem(error) ? error : {status: response.status, code: 'internal'};
  throw new ApiError(problem, response);
}

/** call is full without the ETag. */
export async function call<T>(sent: Sent<T>): Promise<T> {
  return (await full(sent)).data;
}

function isProblem(error: unknown): error is Problem {
  return typeof error === 'object' && error !== null && 'code' in error && 'status' in error;
}

export function aborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** asProblem turns whatever was thrown into something that can be shown. */
export function asProblem(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError({status: 0, code: 'internal', detail: String(error)});
}
