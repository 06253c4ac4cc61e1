// What must type-check, and what must not: `npm test` compiles it and never runs it.
import {
  createClient, clientCredentials, createUser, listAccounts, listUsers, pages, ProblemError, typedEvent,
  UnreachableError, updateUser, type EventOf, type PlatformEvent, type Problem, type User,
} from '@idplatform/sdk';

export async function promises(): Promise<string> {
  const url = 'https://idp.example';
  const client = createClient({url, tokens: clientCredentials({url, clientId: 'crm', clientSecret: '…'})});
  const {data, error} = await listUsers({client, query: {keyword: 'li', search_type: 'generic'}});
  if (error) {
    const problem: Problem = error;
    return problem.code + (problem.errors ?? []).map((fault) => fault.location + fault.message).join();
  }
  const user: User | undefined = data.items[0];
  for await (const one of pages(listUsers, {client, query: {keyword: 'li'}})) {
    const name: string = one.username;
    // @ts-expect-error a member that the record does not have
    void (name + one.colour);
  }
  for await (const one of pages(listAccounts, {client, path: {id: '1'}})) void (one.account satisfies string);
  // @ts-expect-error the application's id is missing
  pages(listAccounts, {client});
  // @ts-expect-error a parameter that the list does not have
  pages(listUsers, {client, query: {colour: 'red'}});
  try {
    const made = await createUser({client, body: {username: 'li.wei'}, throwOnError: true});
    const name: string = made.data.username;
    void name;
  } catch (thrown) {
    if (thrown instanceof ProblemError) return thrown.code;
    if (thrown instanceof UnreachableError) return String(thrown.mayBeDone);
  }
  await updateUser({client, path: {id: '1'}, headers: {'If-Match': '"1"'}, body: {email: null}});
  // @ts-expect-error a parameter that the operation does not have
  await listUsers({client, query: {colour: 'red'}});
  // @ts-expect-error the id is missing
  await updateUser({client, body: {}});
  // @ts-expect-error a value that the member cannot have
  await createUser({client, body: {username: 'li.wei', status: 'asleep'}});
  return user?.username ?? '';
}

export function events(body: string): string {
  const event: PlatformEvent = typedEvent(body);
  switch (event.type) {
    case 'idp.user.created':
      return event.data.record.username;
    case 'idp.node.moved':
      // @ts-expect-error a member that the record does not have
      return event.data.record.username;
    case 'idp.consent.given':
      return event.data.address ?? event.data.record.app_id;
    // @ts-expect-error no type of the catalogue
    case 'idp.moon.landed':
      return '';
    case 'unknown':
      return event.unknown_type;
    default:
      return event.tenantid;
  }
}
export const created = (event: EventOf<'idp.user.created'>): string => event.data.record.id;
