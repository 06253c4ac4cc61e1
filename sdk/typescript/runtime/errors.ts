import type {Fault, Problem} from '../src/types.gen.js';

/** Codes of answers without a problem document: something between here and the platform has made them. */
const codes: Record<number, string> = {
  304: 'not_modified',
  400: 'invalid_parameters', 401: 'unauthenticated', 403: 'forbidden', 404: 'not_found', 405: 'method_not_allowed',
  412: 'version_mismatch', 413: 'too_large', 415: 'unsupported_media_type', 429: 'rate_limited', 500: 'internal',
  502: 'outcome_unknown', 503: 'unavailable', 504: 'outcome_unknown',
};

const text = (value: unknown): string | undefined => (typeof value === 'string' && value ? value : undefined);

/** ProblemError is an answer that refuses a request (RFC 9457). Branch on its `code`. */
export class ProblemError extends Error implements Problem {
  override readonly name = 'ProblemError';
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail?: string;
  readonly errors?: Fault[];
  readonly request_id?: string;
  /** Where a feed of events can go on, if events after the cursor are no longer kept. */
  readonly next?: string;

  declare readonly response: Response;

  constructor(
    /** The body of the answer: the parsed document, or the text of one that is not JSON. */
    readonly body: unknown,
    response: Response,
  ) {
    const members = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
    const code = text(members.code) ?? text(members.error) ?? codes[response.status] ?? 'internal';
    const detail = text(members.detail) ?? text(members.error_description);
    super(`${response.status} ${code}${detail ? `: ${detail}` : ''}`);
    // An uncaught error is printed with its members. A response would fill a page, so it is not listed.
    Object.defineProperty(this, 'response', {value: response, enumerable: false});
    this.code = code;
    this.status = response.status;
    this.type = text(members.type) ?? 'about:blank';
    this.title = text(members.title) ?? code;
    if (detail !== undefined) this.detail = detail;
    if (Array.isArray(members.errors)) this.errors = members.errors as Fault[];
    const id = text(members.request_id) ?? response.headers.get('X-Request-Id');
    if (id) this.request_id = id;
    const next = text(members.next);
    if (next !== undefined) this.next = next;
  }
}

/** UnreachableError tells that no answer came: the connection could not be made, or broke, or took too long. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';

  constructor(
    readonly method: string,
    readonly path: string,
    /** A change was sent and may have been made. The same request with the same key finds out. */
    readonly mayBeDone: boolean,
    /** The request's Idempotency-Key, if it had one. */
    readonly key: string | undefined,
    cause: unknown,
  ) {
    super(`${method} ${path}: no answer${mayBeDone ? ' (whether the change was made is unknown)' : ''}`, {cause});
  }
}
