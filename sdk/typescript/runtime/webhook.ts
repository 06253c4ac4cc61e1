export interface WebhookOptions {
  /** The clock, in milliseconds; Date.now if absent. */
  now?: () => number;
  /** How many seconds the time of the request may be from now; 300 if absent. */
  tolerance?: number;
}

export type WebhookFault = 'header' | 'timestamp' | 'signature' | 'secret';

const faults: Record<WebhookFault, string> = {
  header: 'the request lacks Webhook-Id, Webhook-Timestamp or Webhook-Signature',
  timestamp: 'Webhook-Timestamp is no time, or too far from now',
  signature: 'no signature is by one of the secrets',
  secret: 'a secret must be whsec_ and base64, and there must be one',
};

/** WebhookError tells why a request is not taken as the platform's. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
  constructor(readonly fault: WebhookFault) {
    super(faults[fault]);
  }
}

export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * verifyWebhook checks that a request to a webhook comes from the platform (Standard Webhooks 1.0.0), and throws a
 * WebhookError if not. The body must be as it came, byte by byte. While one secret replaces another, name both. An event
 * comes at least once: ignore a Webhook-Id that you have seen.
 */
export async function verifyWebhook(
  secrets: string | readonly string[], headers: WebhookHeaders, body: string | Uint8Array, options: WebhookOptions = {},
): Promise<void> {
  const keys = await Promise.all((typeof secrets === 'string' ? [secrets] : secrets).map(keyOf));
  if (!keys.length) throw new WebhookError('secret');
  const id = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  const signatures = header(headers, 'webhook-signature').split(/[\s]+/).filter(Boolean);
  if (!id || !timestamp || !signatures.length) throw new WebhookError('header');
  const {now = Date.now, tolerance = 300} = options;
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now() - Number(timestamp) * 1000) > tolerance * 1000) {
    throw new WebhookError('timestamp');
  }
  const before = new TextEncoder().encode(`${id}.${timestamp}.`);
  const text = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array(before.length + text.length);
  signed.set(before);
  signed.set(text, before.length);
  for (const key of keys) {
    for (const signature of signatures) {
      const sum = signature.startsWith('v1,') ? base64(signature.slice(3)) : undefined;
      // WebCrypto compares in constant time.
      if (sum && (await crypto.subtle.verify('HMAC', key, sum, signed))) return;
    }
  }
  throw new WebhookError('signature');
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const key = base64(secret.replace(/^whsec_/, ''));
  if (!key?.length) throw new WebhookError('secret');
  return crypto.subtle.importKey('raw', key, {name: 'HMAC', hash: 'SHA-256'}, false, ['verify']);
}

function header(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const found = Object.keys(headers).find((key) => key.toLowerCase() === name);
  const value = found === undefined ? undefined : headers[found];
  return Array.isArray(value) ? value.join(' ') : (value ?? '');
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
