// Changes of memberships, each with its inverse.
import {addTreeUsers, listUsers, removeTreeUsers, updateTreeUser, type User} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {changed} from '../../lib/load';
import {may} from '../../lib/session';
import {problemTitle} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {undone} from '../../ui/undo';
import {t} from './text';

/** usersOf finds the records of users; without the right to see them ids are shown. */
export async function usersOf(ids: string[], signal?: AbortSignal): Promise<Map<string, User>> {
  const found = new Map<string, User>();
  if (!may('users:read')) return found;
  for (let i = 0; i < ids.length; i += 200) {
    const page = await call(
      listUsers({query: {ids: ids.slice(i, i + 200).join(','), page_size: 200, count: 'false'}, signal}),
    );
    for (const u of page.items ?? []) found.set(u.id, u);
  }
  return found;
}

type Change = {role?: string; title?: string; is_primary?: '1' | '0'};

/** change writes to a membership, and offers the way back. */
export async function change(
  m: {id: string; version: number; role: string; title: string; is_primary: '1' | '0'},
  to: Change,
): Promise<void> {
  const now = await call(updateTreeUser({path: {id: m.id}, body: to, headers: {'If-Match': `"${m.version}"`}}));
  changed('members');
  const back = Object.fromEntries(Object.keys(to).map((k) => [k, m[k as keyof Change]])) as Change;
  // Another membership was the primary one before: it cannot be told which, so that change has no undo.
  toast(
    t('savedDone'),
    to.is_primary
      ? undefined
      : async () => {
          await undone(() =>
            call(updateTreeUser({path: {id: m.id}, body: back, headers: {'If-Match': `"${now.version}"`}})),
          );
          changed('members');
        },
  );
}

/** remove ends memberships, and can make them again. */
export async function remove(
  list: {
    id: string;
    node_id: string;
    user_id: string;
    role: string;
    title: string;
    is_primary: '1' | '0';
    seq?: number;
  }[],
): Promise<boolean> {
  try {
    await call(removeTreeUsers({body: {ids: list.map((m) => m.id)}}));
  } catch (e) {
    toast(`${problemTitle(asProblem(e))}. ${asProblem(e).message}`);
    return false;
  }
  changed('members');
  changed('nodes');
  toast(t('removedDone', {n: list.length}), async () => {
    const items = list.map(({node_id, user_id, role, title, is_primary, seq}) => ({
      node_id,
      user_id,
      role,
      title,
      is_primary,
      ...(seq ? {seq} : {}),
    }));
    await undone(() => call(addTreeUsers({body: {items}})));
    changed('members');
    changed('nodes');
  });
  return true;
}
