// The Go SDK plays the same cases.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {typedEvent, verifyWebhook, WebhookError} from '@idplatform/sdk';

for (const {name, secrets, headers, body, now, result} of JSON.parse(readFileSync('webhooks.json', 'utf8'))) {
  test(`webhook: ${name}`, async () => {
    const lower = Object.fromEntries(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), [value]]));
    for (const form of [headers, lower, new Headers(headers)]) {
      for (const bytes of [body, new TextEncoder().encode(body)]) {
        const verified = verifyWebhook(secrets, form, bytes, {now: () => now * 1000});
        if (result === 'ok') await verified;
        else await assert.rejects(verified, (thrown) => thrown instanceof WebhookError && thrown.fault === result);
      }
    }
  });
}

test('every type of the catalogue is known, and another is told apart', () => {
  for (const event of JSON.parse(readFileSync('events.json', 'utf8'))) {
    assert.deepEqual(typedEvent(JSON.stringify(event)), event);
  }
  const event = {id: '1', type: 'idp.moon.landed', data: {a: 1}};
  assert.deepEqual(typedEvent(event), {...event, type: 'unknown', unknown_type: 'idp.moon.landed'});
});
