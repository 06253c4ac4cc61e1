// Who is signed in. The token itself is in a cookie that scripts cannot read.
import {computed, signal} from '@preact/signals';
import {go, place} from './router';

export interface Session {
  signed_in: boolean;
  actor?: string;
  client_id?: string;
  name?: string;
  tenant_id?: string;
  scope?: string;
  time_signed_in?: string;
  time_expires?: string;
  banner?: string;
  client_sign_in: boolean;
  oidc?: string; // names the issuer at which people may sign in
  secure: boolean;
  failure?: Failure;
  sign_out_url?: string;
}

/** Failure says why an issuer signed nobody in. */
export interface Failure {
  code:
    | 'issuer_away'
    | 'platform_away'
    | 'issuer_refused'
    | 'flow_unknown'
    | 'answer_invalid'
    | 'not_fresh'
    | 'token_untrusted'
    | 'token_no_scopes'
    | 'token_too_large'
    | 'not_secure';
  issuer?: string; // the issuer's error code
  claims?: string[];
  return?: string;
}

const path = '/console/~/session';
const renewalPath = '/console/~/renewal';

/** backToTab is where a sign-in ends that another tab waits for. */
export const backToTab = '/console/sign-in?back';

function fromPage(): Session {
  const text = document.querySelector('meta[name="idp-session"]')?.getAttribute('content');
  return text ? (JSON.parse(text) as Session) : {signed_in: false, client_sign_in: true, secure: true};
}

export const session = signal<Session>(fromPage());

/** failure is set if this page is the answer to a sign-in at the issuer that has failed. */
export const failure = signal(session.value.failure);
// the address of that answer has the issuer's code
if (failure.value) void go(failure.value.return ?? '/console/sign-in', {replace: true, force: true});

/** asking says why somebody must sign in over the page, which keeps what was typed: the session ended, or is old. */
export const asking = signal<'' | 'ended' | 'old'>('');

const scopes = computed(() => new Set((session.value.scope ?? '').split(' ').filter(Boolean)));

/** may says whether the session has a scope. It only decides what is offered: services decide what is done. */
export function may(scope: string): boolean {
  return scopes.value.has(scope) || scopes.value.has('platform:admin');
}

/** otherTenant is the tenant of the URL if it is not the session's own: only an administrator of the platform may. */
export const otherTenant = computed(() => {
  const t = place.value.tenant;
  return t && t !== session.value.tenant_id ? t : '';
});

export class SignInError extends Error {
  constructor(
    readonly code: string,
    readonly detail: string,
    readonly status: number,
  ) {
    super(detail);
  }
}

async function send(method: string, body?: unknown): Promise<Session> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: body ? {'Content-Type': 'application/json'} : {},
      body: body ? JSON.stringify(body) : undefined,
    });
  } catch {
    throw new SignInError('unreachable', '', 0);
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new SignInError(answer.code ?? 'internal', answer.detail ?? '', response.status);
  session.value = answer as Session;
  if (session.value.signed_in) settle(true);
  return session.value;
}

/** refresh asks for the session: a link from another site opens the page without its cookies. */
export const refresh = () => send('GET');
export async function signIn(clientId: string, clientSecret: string): Promise<void> {
  await send('POST', {client_id: clientId, client_secret: clientSecret});
  tellSignedIn();
}
export async function signInWithCode(code: string): Promise<void> {
  await send('POST', {code});
  tellSignedIn();
}
export const signOut = () => send('DELETE');

let waiting: ((signedIn: boolean) => void)[] = [];

/** reauthenticate waits until somebody has signed in again over the page; false if they do not want to. */
export function reauthenticate(why: 'ended' | 'old'): Promise<boolean> {
  asking.value = why;
  return new Promise((resolve) => waiting.push(resolve));
}

/** settle ends the question. */
export function settle(signedIn: boolean): void {
  const all = waiting;
  waiting = [];
  asking.value = '';
  all.forEach((resolve) => resolve(signedIn));
}

// Tabs share the session: those that ask for a sign-in go on when another tab has it.
const tabs = new BroadcastChannel('idp-console');
tabs.onmessage = () => {
  if (asking.value) void refresh().catch(() => undefined);
};
export function tellSignedIn(): void {
  tabs.postMessage('signed in');
}

let renewing: Promise<Response> | undefined;

/**
 * renew asks the issuer for another token if the session's has ended: in one tab at a time, and once for all calls of
 * this one, because issuers take a refresh token that comes twice for a stolen one.
 */
export async function renew(): Promise<Response> {
  renewing ??= askAlone().finally(() => {
    renewing = undefined;
  });
  return (await renewing).clone();
}

async function askAlone(): Promise<Response> {
  return await navigator.locks.request('idp-console-renewal', () => fetch(renewalPath, {method: 'POST'}));
}
