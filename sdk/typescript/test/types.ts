// What must type-check, and what must not: `npm test` compiles it and never runs it.
import {createUser, listUsers, updateUser, type Problem, type User} from '../src';
import {createClient} from '../src/client';

export async function promises(): Promise<string> {
  const client = createClient({baseUrl: 'https://idp.example', auth: () => 'token'});
  const {data, error} = await listUsers({client, query: {keyword: 'li', search_type: 'generic'}});
  if (error) {
    const problem: Problem = error;
    return problem.code + (problem.errors ?? []).map((fault) => fault.location + fault.message).join();
  }
  const user: User | undefined = data.items[0];
  await updateUser({client, path: {id: '1'}, headers: {'If-Match': '"1"'}, body: {email: null}});
  await createUser({client, headers: {'Idempotency-Key': 'k'}, body: {username: 'li.wei'}});
  // @ts-expect-error a parameter that the operation does not have
  await listUsers({client, query: {colour: 'red'}});
  // @ts-expect-error the id is missing
  await updateUser({client, body: {}});
  // @ts-expect-error a value that the member cannot have
  await createUser({client, body: {username: 'li.wei', status: 'asleep'}});
  return user?.username ?? '';
}
