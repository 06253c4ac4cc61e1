import {ProblemError, UnreachableError} from './errors.js';
import type {TokenSource} from './tokens.js';

export interface RetryOptions {
  /** How often a request is sent at most; 4 if absent. */
  attempts?: number;
  /** How many milliseconds a request may spend between its attempts, all in all; 30,000 if absent. */
  maxWait?: number;
  /** After how many milliseconds without an answer a request fails; 60,000 if absent, 0: never. */
  timeout?: number;
  /** Another fetch than the global one. */
  fetch?: typeof fetch;
  /** Waits between attempts. Tests replace it. */
  sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

const firstPause = 200;
const longestPause = 5_000;

/** A body that can be sent again; absent for a stream, which is sent once. */
const bodies = new WeakMap<Request, string | Blob | URLSearchParams | undefined>();

/** keepBody remembers what a request sends, so that it can be sent again. */
export function keepBody(request: Request, body: unknown): void {
  const again = typeof body === 'string' || body instanceof Blob || body instanceof URLSearchParams;
  if (again) bodies.set(request, body);
  else if (!request.body) bodies.set(request, undefined);
}

/** retrying makes a fetch that sends requests again where that is safe. */
export function retrying(options: RetryOptions, tokens?: TokenSource): (request: Request) => Promise<Response> {
  const {attempts = 4, maxWait = 30_000, timeout = 60_000, sleep = pause} = options;
  const send = options.fetch ?? ((request: Request) => globalThis.fetch(request));
  return async (request) => {
    const reads = request.method === 'GET' || request.method === 'HEAD';
    const key = request.headers.get('Idempotency-Key') ?? undefined;
    const safe = reads || key !== undefined;
    let left = maxWait;
    let fresh = false; // the token has been replaced
    for (let tries = 1; ; tries++) {
      const replayable = bodies.has(request) || reads;
      const body = bodies.get(request);
      const attempt = replayable ? new Request(request, body === undefined ? {} : {body}) : request;
      let wait = backoff(tries);
      let response: Response | undefined;
      let lost: UnreachableError | undefined;
      try {
        response = await exchange(send, attempt, request.signal, timeout);
      } catch (cause) {
        if (request.signal.aborted) throw request.signal.reason;
        const {pathname} = new URL(request.url); // without the query, which may be private
        lost = new UnreachableError(request.method, pathname, !reads, key, cause);
        if (!safe || cause instanceof Slow) throw lost;
      }
      if (response) {
        if (response.ok || response.status === 304) return response;
        if (response.status === 401 && tokens && !fresh && replayable && (await another(request, tokens))) {
          fresh = true;
          continue;
        }
        if (!(await again(response, safe, tries))) return response;
        wait = Math.max(wait, retryAfter(response.headers.get('Retry-After')));
      }
      if (!replayable || tries >= attempts || wait > left) {
        if (response) return response;
        throw lost;
      }
      left -= wait;
      await response?.body?.cancel();
      await sleep(wait, request.signal);
    }
  };
}

/** Slow tells that an answer did not come in time. The platform may still be at work: it is not asked again. */
class Slow extends Error {
  constructor(milliseconds: number) {
    super(`no answer within ${milliseconds} ms`);
  }
}

/** exchange sends a request once, and reads an answer of JSON whole, so that one that breaks off counts as lost. */
async function exchange(
  send: (request: Request) => Promise<Response>, request: Request, caller: AbortSignal, timeout: number,
): Promise<Response> {
  const controller = new AbortController();
  const timer = timeout > 0 ? setTimeout(() => controller.abort(new Slow(timeout)), timeout) : undefined;
  try {
    const response = await send(new Request(request, {signal: AbortSignal.any([caller, controller.signal])}));
    const kind = response.headers.get('Content-Type') ?? '';
    if (!/^application\/(\w[\w.-]*\+)?json\b/.test(kind)) return response;
    const body = await response.text();
    if (response.ok && body) JSON.parse(body);
    const {status, statusText, headers} = response;
    return new Response(body === '' ? null : body, {status, statusText, headers});
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

/** again reports whether a refused request may be sent again. */
async function again(response: Response, safe: boolean, tries: number): Promise<boolean> {
  const {status} = response;
  if (status === 429) return true; // it changed nothing
  if (status !== 502 && status !== 503 && status !== 504 && status !== 409) return false;
  const problem = await response.clone().json().catch(() => undefined);
  const {code} = new ProblemError(problem, response);
  if (status === 409) return code === 'request_in_progress' && tries > 1; // the first attempt still runs
  return safe || (status === 503 && problem?.code === 'unavailable'); // the platform says so only if it changed nothing
}

/** another gives the request another token, if the refused one is from the source. */
async function another(request: Request, tokens: TokenSource): Promise<boolean> {
  const sent = request.headers.get('Authorization');
  if (!sent?.startsWith('Bearer ') || !tokens.forget) return false;
  tokens.forget(sent.slice('Bearer '.length));
  const token = await tokens.token();
  request.headers.set('Authorization', `Bearer ${token}`);
  return `Bearer ${token}` !== sent;
}

/** backoff is the pause after that many tries: longer each time, and not the same for all clients. */
function backoff(tries: number): number {
  const longest = Math.min(firstPause * 2 ** (tries - 1), longestPause);
  return longest / 2 + (Math.random() * longest) / 2;
}

/** retryAfter reads the header Retry-After, seconds or a date, as milliseconds. */
function retryAfter(header: string | null): number {
  const value = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - Date.now());
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', end);
      resolve();
    }, milliseconds);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, {once: true});
  });
}
