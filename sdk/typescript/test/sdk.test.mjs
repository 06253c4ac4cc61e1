// Plays the installed SDK against a small server: what is sent, and what comes of each kind of answer.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {once} from 'node:events';
import {inspect} from 'node:util';
import {after, before, beforeEach, test} from 'node:test';
import * as sdk from '@idplatform/sdk';

const {clientCredentials, createClient, pages, ProblemError, UnreachableError} = sdk;

let server, url, client, requests, answer, waits;
const sleep = async (milliseconds) => { waits.push(milliseconds); };

before(async () => {
  server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    requests.push({method: request.method, url: request.url, headers: request.headers, body});
    answer(request, response, requests.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${server.address().port}`;
  client = createClient({url, tokens: 'the-token', tenant: 'acme', sleep});
});

after(() => {
  server.closeAllConnections();
  server.close();
});

beforeEach(() => { requests = []; waits = []; });

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
  for await (const user of pages(sdk.listUsers, {client, query: {keyword: 'li'}})) ids.push(user.id);
  assert.deepEqual(ids, ['1', '2']);
  const sent = requests.map((r) => Object.fromEntries(new URL(r.url, 'http://x').searchParams));
  assert.deepEqual(sent[0], {keyword: 'li', page_size: '200', count: 'false'});
  assert.deepEqual(sent[1], {...sent[0], page_token: 'a+b/='});
  answer = json(403, {code: 'forbidden', status: 403});
  await assert.rejects(pages(sdk.listUsers, {client}).next(),
    (thrown) => thrown instanceof ProblemError && thrown.code === 'forbidden');
});

test('what pages throw is a ProblemError, whoever has made the answer', async () => {
  for (const body of [{error: 'bad gateway'}, {error: 'invalid_token', error_description: 'expired'}, {schemas: []}, '']) {
    for (const status of [401, 404, 418]) {
      answer = json(status, body);
      await assert.rejects(pages(sdk.listUsers, {client}).next(),
        (thrown) => thrown instanceof ProblemError && thrown.status === status, JSON.stringify(body));
    }
  }
  const options = {client, throwOnError: false}; // an error that pages got instead would be no page
  await assert.rejects(pages(sdk.listUsers, options).next(), ProblemError);
});

test('a problem is the error, with every fault', async () => {
  answer = json(400, {code: 'invalid_parameters', status: 400, errors: [{location: 'body.email', message: 'no'}]});
  const {data, error, response} = await sdk.createUser({client, body: {username: 'x'}});
  assert.equal(data, undefined);
  assert.equal(error.code, 'invalid_parameters');
  assert.equal(error.errors[0].location, 'body.email');
  assert.equal(response.status, 400);
  assert.equal(error.response.status, 400);
  assert.doesNotMatch(inspect(error), /Response/, 'what nobody catches is printed in few lines');
  await assert.rejects(sdk.createUser({client, body: {username: 'x'}, throwOnError: true}),
    (thrown) => thrown instanceof ProblemError && thrown.code === 'invalid_parameters' && thrown.status === 400);
});

test('an answer of something else is a problem too, and an OAuth error stays one', async () => {
  answer = (_, response) => response.writeHead(404, {'Content-Type': 'text/html', 'X-Request-Id': 'r1'}).end('<p>no');
  const {error} = await sdk.getUser({client, path: {id: '1'}});
  assert.ok(error instanceof ProblemError);
  assert.deepEqual([error.code, error.status, error.body, error.request_id], ['not_found', 404, '<p>no', 'r1']);
  answer = json(400, {error: 'invalid_scope', error_description: 'no'});
  const refused = await sdk.createToken({client, body: {grant_type: 'client_credentials'}});
  assert.deepEqual(refused.error, {error: 'invalid_scope', error_description: 'no'}, 'as its type says');
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

const lose = (times, then) => (request, response, n) => {
  if (n <= times) request.socket.destroy();
  else then(request, response);
};
const keys = () => requests.map((r) => r.headers['idempotency-key']);

test('a lost answer is asked for again, a change by the same key', async () => {
  answer = lose(1, json(200, {id: '7'}));
  assert.equal((await sdk.createUser({client, body: {username: 'x'}})).data.id, '7');
  assert.equal(keys().length, 2);
  assert.ok(keys()[0] && keys()[0] === keys()[1], 'one key, made by the SDK');
  assert.deepEqual(requests.map((r) => r.body), ['{"username":"x"}', '{"username":"x"}']);
  requests = [];
  const own = await sdk.createUser({client, headers: {'Idempotency-Key': 'k1'}, body: {username: 'x'}});
  assert.equal(own.data.id, '7');
  assert.deepEqual(keys(), ['k1', 'k1']);
  requests = [];
  assert.equal((await sdk.getUser({client, path: {id: '7'}})).data.id, '7');
  assert.equal(requests.length, 2);
});

test('a page that is not served by HTTPS makes keys, too', async (t) => {
  Object.defineProperty(crypto, 'randomUUID', {value: undefined, configurable: true});
  t.after(() => delete crypto.randomUUID);
  answer = json(200, {access_token: 't', expires_in: 100});
  assert.equal(await clientCredentials({url, clientId: 'a', clientSecret: 'b'}).token(), 't');
  for (const username of ['x', 'y']) await sdk.createUser({client, body: {username}, throwOnError: true});
  for (const key of keys()) assert.match(key, /^[0-9a-f]{32}$/);
  assert.equal(new Set(keys()).size, 3);
});

test('what may have been done without a key is not repeated', async () => {
  answer = lose(9);
  await assert.rejects(sdk.updateUser({client, path: {id: '7'}, body: {email: null}}),
    (thrown) => thrown instanceof UnreachableError && thrown.mayBeDone && thrown.path === '/v1/users/7');
  assert.equal(requests.length, 1);
  requests = [];
  answer = json(502, {code: 'outcome_unknown', status: 502});
  assert.equal((await sdk.updateUser({client, path: {id: '7'}, body: {email: null}})).error.code, 'outcome_unknown');
  assert.equal(requests.length, 1);
});

test('no answer is an UnreachableError, never a result', async () => {
  answer = lose(9);
  await assert.rejects(sdk.listUsers({client}), (thrown) => thrown instanceof UnreachableError && !thrown.mayBeDone);
  assert.equal(requests.length, 4, 'attempts are bounded');
  const nobody = createClient({url: 'http://127.0.0.1:1', tokens: 't', attempts: 1});
  await assert.rejects(sdk.listUsers({client: nobody}), UnreachableError);
});

test('an answer that breaks off is lost', async () => {
  answer = (request, response, n) => {
    if (n > 1) return json(200, {items: []})(request, response);
    response.writeHead(200, {'Content-Type': 'application/json', 'Content-Length': '100'});
    response.write('{"items":');
    setImmediate(() => response.destroy());
  };
  assert.deepEqual((await sdk.listUsers({client})).data, {items: []});
  assert.equal(requests.length, 2);
});

test('a busy platform is asked again when it says so', async () => {
  for (const status of [429, 503]) {
    requests = [];
    waits = [];
    const busy = json(status, {code: status === 429 ? 'rate_limited' : 'unavailable', status}, {'Retry-After': '2'});
    answer = (request, response, n) => (n === 1 ? busy : json(200, {id: '7'}))(request, response);
    const {data} = await sdk.updateUser({client, path: {id: '7'}, body: {email: null}});
    assert.equal(data.id, '7', 'it had changed nothing');
    assert.deepEqual(waits, [2000]);
  }
});

test('it is not waited for longer than allowed', async () => {
  answer = json(503, {code: 'unavailable', status: 503}, {'Retry-After': '31'});
  const {error, response} = await sdk.listUsers({client});
  assert.equal(error.code, 'unavailable');
  assert.equal(response.headers.get('retry-after'), '31');
  assert.equal(requests.length, 1);
  assert.deepEqual(waits, []);
});

test('a token is asked for once, kept until shortly before its end, and replaced after a 401', async () => {
  let now = 0, made = 0, refuse = '';
  answer = (request, response) => {
    const fresh = () => json(200, {access_token: `t${++made}`, expires_in: 100});
    if (request.url === '/v1/oauth2/token') return fresh()(request, response);
    const status = request.headers.authorization === `Bearer ${refuse}` ? 401 : 200;
    json(status, status === 200 ? {items: []} : {code: 'unauthenticated', status})(request, response);
  };
  const tokens = clientCredentials({url, clientId: 'a b', clientSecret: 's:ü', sleep, now: () => now});
  const own = createClient({url, tokens, sleep});
  const list = async () => {
    requests = [];
    const {error} = await sdk.listUsers({client: own});
    return [error?.code, ...requests.map((r) => r.headers.authorization)];
  };
  assert.deepEqual(await Promise.all(Array.from({length: 20}, () => tokens.token())), Array(20).fill('t1'));
  assert.equal(requests.length, 1);
  assert.equal(requests[0].body, 'grant_type=client_credentials');
  assert.equal(atob(requests[0].headers.authorization.slice(6)), 'a+b:s%3A%C3%BC');
  now = 89_999;
  assert.deepEqual(await list(), [undefined, 'Bearer t1']);
  now = 90_000;
  assert.equal(await tokens.token(), 't2');
  refuse = 't2';
  const [code, first, , second] = await list();
  assert.deepEqual([code, first, second], [undefined, 'Bearer t2', 'Bearer t3']);
  refuse = 't3';
  tokens.forget('t2');
  assert.equal(await tokens.token(), 't3', 'an old token does not end the new one');
  const before = answer;
  answer = (request, response) => (request.url === '/v1/oauth2/token' ? before
    : json(401, {code: 'unauthenticated', status: 401}))(request, response);
  assert.equal((await list())[0], 'unauthenticated');
  assert.equal(requests.length, 3, 'a new token is tried once');
});

test('a request ends with its signal', async () => {
  answer = () => {}; // it never comes
  const controller = new AbortController();
  const running = sdk.listUsers({client, signal: controller.signal});
  while (requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  await assert.rejects(running, {name: 'AbortError'});
  assert.equal(requests.length, 1);
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

test('a record that has not changed', async () => {
  answer = (_, response) => response.writeHead(304, {ETag: '"3"'}).end();
  const {error} = await sdk.getUser({client, path: {id: '7'}, headers: {'If-None-Match': '"3"'}});
  assert.deepEqual([error.code, error.status], ['not_modified', 304]);
});

test('an answer without a body', async () => {
  answer = (_, response) => response.writeHead(204).end();
  const {error, response} = await sdk.deleteUser({client, path: {id: '7'}});
  assert.equal(error, undefined);
  assert.equal(response.status, 204);
});
