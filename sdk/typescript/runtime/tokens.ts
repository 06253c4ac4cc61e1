import {ProblemError} from './errors.js';
import {newKey} from './key.js';
import {keepBody, retrying, type RetryOptions} from './retry.js';

/** TokenSource gives the token of each request. */
export interface TokenSource {
  token(): Promise<string>;
  /** A request with this token was refused with 401. The next call of token() gets another one. */
  forget?(token: string): void;
}

export interface ClientCredentials extends RetryOptions {
  /** The address of the platform. */
  url: string;
  clientId: string;
  clientSecret: string;
  /** Scopes, separated by blanks; absent: all that the application has. */
  scope?: string;
  /** Another tenant than the application's, for the scope platform:admin. */
  tenant?: string;
  /** The clock, in milliseconds. Tests replace it. */
  now?: () => number;
}

/**
 * clientCredentials gets tokens for an application (RFC 6749 §4.4) and keeps each until shortly before its end. Callers
 * that wait at one moment share one request.
 */
export function clientCredentials(of: ClientCredentials): Required<TokenSource> {
  const now = of.now ?? Date.now;
  const send = retrying(of);
  let current: {token: string; until: number} | undefined;
  let running: Promise<string> | undefined;

  const get = async (): Promise<string> => {
    const asked = now();
    const form = new URLSearchParams({grant_type: 'client_credentials'});
    if (of.scope) form.set('scope', of.scope);
    const headers = new Headers({
      Authorization: basicAuth(of.clientId, of.clientSecret), Accept: 'application/json',
      'Content-Type': 'application/x-www-form-urlencoded',
      'Idempotency-Key': newKey(), // asking again does no harm
    });
    if (of.tenant) headers.set('X-Tenant-Id', of.tenant);
    const address = `${of.url.replace(/\/+$/, '')}/v1/oauth2/token`;
    const request = new Request(address, {method: 'POST', headers, body: form, redirect: 'manual'});
    keepBody(request, form);
    const response = await send(request);
    const answer = await response.json().catch(() => undefined);
    if (!response.ok || typeof answer?.access_token !== 'string') throw new ProblemError(answer, response);
    const lifetime = (Number(answer.expires_in) || 0) * 1000;
    current = {token: answer.access_token, until: asked + lifetime - Math.min(30_000, lifetime / 10)};
    return answer.access_token;
  };

  return {
    async token() {
      if (current && now() < current.until) return current.token;
      running ??= get().finally(() => (running = undefined));
      return running;
    },
    forget(token) {
      if (current?.token === token) current = undefined;
    },
  };
}

/** basicAuth is the header of client_secret_basic: both parts are form-encoded first. */
function basicAuth(id: string, secret: string): string {
  const encoded = (value: string) => new URLSearchParams({v: value}).toString().slice(2);
  return `Basic ${btoa(`${encoded(id)}:${encoded(secret)}`)}`;
}
