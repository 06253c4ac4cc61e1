// Plays the SDK, as tsc compiles it, against a small server: what is sent, and what comes of each kind of answer.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {once} from 'node:events';
import {createRequire} from 'node:module';
import {after, before, beforeEach, test} from 'node:test';

const sdk = createRequire(import.meta.url)(`${process.env.SDK_BUILD}/index.js`);
const {createClient} = createRequire(import.meta.url)(`${process.env.SDK_BUILD}/client/index.js`);

let server, client, requests, answer;

before(async () => {
  server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    requests.push({method: request.method, url: request.url, headers: request.headers, body});
    answer(request, response, requests.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = createClient({
    baseUrl: `http://127.0.0.1:${server.address().port}`, auth: () => 'the-token',
    headers: {'X-Tenant-Id': 'acme'},
  });
});

after(() => {
  server.closeAllConnections();
  server.close();
});

beforeEach(() => { requests = []; });

const json = (status, value, headers = {}) => (_, response) => {
  const kind = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, {'Content-Type': kind, ...headers});
  response.end(JSON.stringify(value));
};

test('a list: parameters, token, tenant', async () => {
  answer = json(200, {items: [{id: '7', username: 'li.wei'}], total: 1});
  const {data, error, response} = await sdk.listUsers({client, query: {keyword: '李 &', page_size: 20}});
  assert.equal(error, undefined);
  assert.equal(data.items[0].username, 'li.wei');
  assert.equal(response.status, 200);
  const sent = new URL(requests[0].url, 'http://x');
  assert.equal(sent.pathname, '/v1/users');
  assert.deepEqual(Object.fromEntries(sent.searchParams), {keyword: '李 &', page_size: '20'});
  assert.equal(requests[0].headers.authorization, 'Bearer the-token');
  assert.equal(requests[0].headers['x-tenant-id'], 'acme');
});

test('pages are walked by their tokens', async () => {
  answer = (request, response) => {
    const token = new URL(request.url, 'http://x').searchParams.get('page_token');
    json(200, token ? {items: [{id: '2'}]} : {items: [{id: '1'}], next_page_token: 'a+b/='})(request, response);
  };
  const ids = [];
  for (let token; ; ) {
    const {data} = await sdk.listUsers({client, query: {page_token: token}});
    ids.push(...data.items.map((user) => user.id));
    if (!(token = data.next_page_token)) break;
  }
  assert.deepEqual(ids, ['1', '2']);
});

test('a problem is the error, with every fault', async () => {
  answer = json(400, {code: 'invalid_parameters', status: 400, errors: [{location: 'body.email', message: 'no'}]});
  const {data, error, response} = await sdk.createUser({client, body: {username: 'x'}});
  assert.equal(data, undefined);
  assert.equal(error.code, 'invalid_parameters');
  assert.equal(error.errors[0].location, 'body.email');
  assert.equal(response.status, 400);
  await assert.rejects(sdk.createUser({client, body: {username: 'x'}, throwOnError: true}),
    (thrown) => thrown.code === 'invalid_parameters');
});

test('versions: ETag of an answer, If-Match of a change', async () => {
  answer = json(200, {id: 'a/b'}, {ETag: '"3"'});
  const {response} = await sdk.getUser({client, path: {id: 'a/b'}});
  assert.equal(response.headers.get('etag'), '"3"');
  await sdk.updateUser({client, path: {id: 'a/b'}, headers: {'If-Match': '"3"'}, body: {email: null}});
  assert.equal(requests[1].url, '/v1/users/a%2Fb', 'an id is one segment');
  assert.equal(requests[1].method, 'PATCH');
  assert.equal(requests[1].headers['if-match'], '"3"');
  assert.equal(requests[1].headers['content-type'], 'application/json');
  assert.equal(requests[1].body, '{"email":null}', 'null takes a member away');
});

test('a lost answer is asked for again by the same key', async () => {
  answer = (request, response, n) => {
    if (n === 1) return request.socket.destroy();
    json(200, {id: '7'})(request, response);
  };
  const create = () => sdk.createUser({client, headers: {'Idempotency-Key': 'k1'}, body: {username: 'x'}});
  const lost = await create().catch((thrown) => ({error: thrown}));
  assert.ok(lost.error, 'a broken connection is an error');
  assert.equal((await create()).data.id, '7');
  assert.deepEqual(requests.map((r) => r.headers['idempotency-key']), ['k1', 'k1']);
});

test('a busy platform says when to come back', async () => {
  answer = json(503, {code: 'unavailable', status: 503}, {'Retry-After': '2'});
  const {error, response} = await sdk.listUsers({client});
  assert.equal(error.code, 'unavailable');
  assert.equal(response.headers.get('retry-after'), '2');
});

test('a request ends with its signal', async () => {
  answer = () => {}; // it never comes
  const controller = new AbortController();
  const running = sdk.listUsers({client, signal: controller.signal}).catch((thrown) => ({error: thrown}));
  while (requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  assert.equal((await running).error.name, 'AbortError');
});

test('an export comes as a stream', async () => {
  answer = (_, response) => {
    response.writeHead(200, {'Content-Type': 'application/x-ndjson'});
    response.write('{"id":"1"}\n');
    response.end('{"id":"2"}\n');
  };
  const {data} = await sdk.exportUsers({client, query: {format: 'ndjson'}, parseAs: 'stream'});
  let text = '';
  for await (const part of data.pipeThrough(new TextDecoderStream())) text += part;
  assert.equal(text, '{"id":"1"}\n{"id":"2"}\n');
});

test('an answer without a body', async () => {
  answer = (_, response) => response.writeHead(204).end();
  const {error, response} = await sdk.deleteUser({client, path: {id: '7'}});
  assert.equal(error, undefined);
  assert.equal(response.status, 204);
});
