// What ends with a change that keeps a user out, counted before it is made.
import {listAccountsOfUser, listGrants, listSessions, listTreeUsers, type User} from '@idplatform/sdk';
import {aborted, call} from '../../lib/api';
import {number} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {may} from '../../lib/session';
import {Late} from '../../ui/basics';
import {Facts} from '../../ui/record';
import {t} from './text';

/** Reach is a kind of records that end. */
type Reach = 'sessions' | 'grants' | 'memberships' | 'accounts';

type Count = (user: string, signal: AbortSignal) => Promise<number>;

const of = (page: {total?: number; items?: unknown[] | null}) => page.total ?? page.items?.length ?? 0;

const counts: Record<Reach, {scope: string; count: Count}> = {
  sessions: {
    scope: 'sign-in:read',
    count: async (user_id, signal) => of(await call(listSessions({query: {user_id, page_size: 1}, signal}))),
  },
  grants: {
    scope: 'sign-in:read',
    count: async (user_id, signal) => of(await call(listGrants({query: {user_id, page_size: 1}, signal}))),
  },
  memberships: {
    scope: 'organization:read',
    count: async (user_id, signal) => (await call(listTreeUsers({query: {user_id}, signal})))?.length ?? 0,
  },
  accounts: {
    scope: 'applications:read',
    count: async (user_id, signal) => of(await call(listAccountsOfUser({query: {user_id, page_size: 1}, signal}))),
  },
};

/** signedIn is what ends whenever somebody is kept out; everything is what ends with the account. */
export const signedIn: Reach[] = ['sessions', 'grants'];
export const everything: Reach[] = [...signedIn, 'memberships', 'accounts'];

/** Effects counts what ends. What cannot be counted, for want of a scope or a service, is said to be unknown. */
export function Effects({user, ends}: {user: User; ends: Reach[]}) {
  const {state} = useLoad(`effects ${user.id} ${ends.join()}`, (signal) =>
    Promise.all(
      ends.map(async (reach) => {
        const {scope, count} = counts[reach];
        if (!may(scope)) return undefined;
        return count(user.id, signal).catch((e: unknown) => {
          if (aborted(e)) throw e;
          return undefined;
        });
      }),
    ),
  );
  const {value, busy} = state.value;
  return (
    <Late busy={busy && !value} lines={ends.length}>
      {value && (
        <section class="section">
          <h3>{t('ends')}</h3>
          <Facts
            facts={ends.map((reach, i): [string, string] => {
              const n = value[i];
              return [t(reach), n === undefined ? t('notKnown') : number(n)];
            })}
          />
        </section>
      )}
    </Late>
  );
}
