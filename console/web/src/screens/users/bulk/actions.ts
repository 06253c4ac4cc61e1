// What can be done with many users, and how a batch of each is sent.
import {
  changeOrganizationOfUsers,
  deleteUsers,
  inviteUsers,
  lockUsers,
  resetPasswords,
  unlockUsers,
  type PasswordResets,
} from '@idplatform/sdk';
import {call} from '../../../lib/api';
import type {IconName} from '../../../ui/icon';

export const actions = ['lock', 'unlock', 'invite', 'reset', 'move', 'delete'] as const;
export type Action = (typeof actions)[number];

export const icons: Record<Action, IconName> = {
  lock: 'lock',
  unlock: 'unlock',
  invite: 'mail',
  reset: 'key',
  move: 'tree',
  delete: 'trash',
};

export const scopes: Record<Action, string> = {
  lock: 'users:write',
  unlock: 'users:write',
  invite: 'users:secrets',
  reset: 'users:secrets',
  move: 'users:write',
  delete: 'users:write',
};

/** Details are what an action needs beside the users. */
export interface Details {
  reason: string; // of a lock
  tree: string; // the code of the core object in which people move
  from: string; // the node that they leave; empty: they are only added
  to: string;
}

/** sender sends batches of an action; total is how many users all of them are. */
export function sender(action: Action, d: Details, total: number, dry: boolean) {
  const query = {dry_run: dry ? 'true' : undefined};
  return async (ids: string[], key: string): Promise<PasswordResets | undefined> => {
    const sent = {query, headers: {'Idempotency-Key': key}};
    switch (action) {
      case 'lock':
        await call(lockUsers({...sent, body: {ids, reason: d.reason}}));
        return undefined;
      case 'unlock':
        await call(unlockUsers({...sent, body: {ids}}));
        return undefined;
      case 'invite':
        await call(inviteUsers({...sent, body: {ids}}));
        return undefined;
      case 'reset':
        return call(resetPasswords({...sent, body: {ids}}));
      case 'move': {
        const body = {ids, object_code: d.tree, from_node_id: d.from || undefined, to_node_id: d.to};
        await call(changeOrganizationOfUsers({...sent, body}));
        return undefined;
      }
      case 'delete':
        // The console wants a fresh sign-in for a run of many; a delete repeats without a key.
        await call(
          deleteUsers({query, headers: {'X-Console-Run': String(total)} as Record<string, string>, body: {ids}}),
        );
        return undefined;
    }
  };
}
