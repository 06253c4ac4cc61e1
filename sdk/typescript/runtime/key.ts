/**
 * newKey is a fresh Idempotency-Key. It does without crypto.randomUUID, which a page has only if it is served by HTTPS
 * or from its own machine.
 */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
