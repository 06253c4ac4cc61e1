import {createClient as createPlainClient, type Client} from '../src/client/index.js';
import {ProblemError} from './errors.js';
import {newKey} from './key.js';
import {keepBody, retrying, type RetryOptions} from './retry.js';
import type {TokenSource} from './tokens.js';

export type {Client};

export interface ClientConfig extends RetryOptions {
  /** The address of the platform, such as https://idp.example. */
  url: string;
  /** Where tokens come from; a text is a token that never changes. */
  tokens?: TokenSource | string;
  /** The tenant of all calls, if it is not the token's: for the scope platform:admin. */
  tenant?: string;
  /** Further headers of all calls. */
  headers?: Record<string, string>;
}

/** createClient makes the client that every operation takes. */
export function createClient(config: ClientConfig): Client {
  const {tokens} = config;
  const source = typeof tokens === 'string' ? {token: async () => tokens} : tokens;
  const client = createPlainClient({
    baseUrl: config.url.replace(/\/+$/, ''),
    headers: {...(config.tenant ? {'X-Tenant-Id': config.tenant} : {}), ...config.headers},
    redirect: 'manual', // no redirect makes a GET of a change
    fetch: retrying(config, source) as typeof fetch,
    ...(source ? {auth: () => source.token()} : {}),
  });
  client.interceptors.request.use((request, options) => {
    if (request.method === 'POST' && !request.headers.has('Idempotency-Key')) {
      request.headers.set('Idempotency-Key', newKey());
    }
    keepBody(request, options.serializedBody ?? options.body);
    return request;
  });
  client.interceptors.error.use((error, response: Response | undefined, _, options) => {
    if (!response) throw error; // there is no answer: no document can be the result
    const other = typeof error === 'object' && error !== null && ('schemas' in error || 'error' in error);
    return other && !options.throwOnError ? error : new ProblemError(error, response);
  });
  return client;
}
