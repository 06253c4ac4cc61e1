// What a change can be undone with: how the record of each entity is read and written, and the inverse of actions.
import {
  disableApplication,
  disableAccount,
  disableAuthMethod,
  disableConnection,
  disableMfa,
  disableSso,
  disableTreeNode,
  enableAccount,
  enableApplication,
  enableAuthMethod,
  enableConnection,
  enableMfa,
  enableSso,
  enableTreeNode,
  getAccount,
  getApplication,
  getAuthMethod,
  getAuthTemplate,
  getAuthUnit,
  getAuthUnitRule,
  getComponent,
  getConnection,
  getCredential,
  getEventSubscription,
  getFunction,
  getJob,
  getKvBucket,
  getResource,
  getResourceSet,
  getTreeNode,
  getTreeUser,
  getUser,
  listCoreObjects,
  lockUser,
  pauseEventSubscription,
  putKvBucket,
  reinstateUser,
  replaceAccount,
  replaceAuthUnitRule,
  replaceConnection,
  replaceResourceSet,
  resumeEventSubscription,
  resumeJob,
  suspendJob,
  unlockUser,
  updateApplication,
  updateAuthMethod,
  updateAuthTemplate,
  updateAuthUnit,
  updateComponent,
  updateCoreObject,
  updateCredential,
  updateEventSubscription,
  updateFunction,
  updateJob,
  updateResource,
  updateTreeNode,
  updateTreeUser,
  updateUser,
  type AuditEntry,
} from '@idplatform/sdk';
import {ApiError, call} from '../../lib/api';
import {own} from '../../lib/own';
import type {Fields} from '../../lib/patch';
import {place} from '../../lib/router';
import {input} from '../grants/rule-input';

/** Key names a record: its id, and what else its path has. */
export interface Key {
  id: string;
  parent: string;
}

/** Written is how a record is written back. */
export interface Written {
  key: Key;
  patch: Fields; // the members that go back
  whole: Fields; // the record with them
  headers: {'If-Match': string};
}

export interface Target {
  scope: string;
  kind?: string; // of the lists that show it
  parent?: string; // the member of the record's first entry that its path needs, too
  get: (key: Key, signal?: AbortSignal) => Promise<Fields>;
  write: (w: Written) => Promise<unknown>;
}

type Get = (options: {path: {id: string}; signal?: AbortSignal}) => unknown;
type Patch = (options: {path: {id: string}; body: never; headers: {'If-Match': string}}) => unknown;

const read = (sent: unknown) => call(sent as Promise<{data?: Fields}>);
const some = (record: Fields, members: string[]) => Object.fromEntries(members.map((m) => [m, record[m]])) as never;

/** patched is a record that has PATCH. */
function patched(get: Get, patch: Patch, scope: string, kind?: string): Target {
  return {
    scope,
    kind,
    get: ({id}, signal) => read(get({path: {id}, signal})),
    write: ({key: {id}, patch: body, headers}) => read(patch({path: {id}, body: body as never, headers})),
  };
}

/** targets are by entity. */
const targets: Record<string, Target> = {
  user: patched(getUser, updateUser, 'users:write', 'users'),
  credential: patched(getCredential, updateCredential, 'users:write'),
  application: patched(getApplication, updateApplication, 'applications:write', 'apps'),
  auth_unit: patched(getAuthUnit, updateAuthUnit, 'permissions:write', 'units'),
  core_object: patched(coreObject, updateCoreObject, 'organization:write', 'objects'),
  node: patched(getTreeNode, updateTreeNode, 'organization:write', 'nodes'),
  membership: patched(getTreeUser, updateTreeUser, 'organization:write', 'members'),
  auth_method: patched(getAuthMethod, updateAuthMethod, 'identity-sources:write'),
  auth_template: patched(getAuthTemplate, updateAuthTemplate, 'identity-sources:write'),
  event_subscription: patched(getEventSubscription, updateEventSubscription, 'events:write', 'subscriptions'),
  job: patched(getJob, updateJob, 'jobs:write', 'jobs'),
  function: patched(getFunction, updateFunction, 'functions:write', 'functions'),
  component: patched(getComponent, updateComponent, 'functions:write', 'components'),
  resource: {
    scope: 'permissions:write',
    kind: 'resources',
    parent: 'application_id',
    get: ({id, parent}, signal) => read(getResource({path: {id}, query: {application_id: parent}, signal})),
    write: ({key: {id}, patch, headers}) => read(updateResource({path: {id}, body: patch, headers})),
  },
  resource_set: {
    scope: 'permissions:write',
    kind: 'sets',
    get: ({id}, signal) => read(getResourceSet({path: {id}, signal})),
    write: ({key: {id}, whole, headers}) =>
      read(
        replaceResourceSet({
          path: {id},
          body: some(whole, ['code', 'name', 'description', 'is_global']),
          headers: {...headers, 'X-Tenant-Id': place.value.tenant},
        }),
      ),
  },
  auth_rule: {
    scope: 'permissions:write',
    kind: 'rules',
    parent: 'auth_unit_id',
    get: ({id, parent}, signal) => read(getAuthUnitRule({path: {rid: parent, tid: id}, signal})),
    write: ({key: {id, parent}, whole, headers}) =>
      read(replaceAuthUnitRule({path: {rid: parent, tid: id}, body: input(whole as never), headers})),
  },
  account: {
    scope: 'applications:write',
    parent: 'app_id',
    get: ({id, parent}, signal) => read(getAccount({path: {app_id: parent, id}, signal})),
    write: ({key: {id, parent}, whole, headers}) => {
      const members = ['user_id', 'account', 'display_name', 'is_default', 'status', 'free_ext_props', 'sys_ext_props'];
      const body = {...(some(whole, members) as object), ...(whole.password ? {password: whole.password} : {})};
      return read(replaceAccount({path: {app_id: parent, id}, body: body as never, headers}));
    },
  },
  connection: {
    scope: 'identity-sources:write',
    kind: 'connections',
    get: ({id}, signal) => read(getConnection({path: {id}, signal})),
    write: ({key: {id}, whole, headers}) =>
      read(
        replaceConnection({path: {id}, body: some(whole, ['provider_code', 'display_name', 'config_fields']), headers}),
      ),
  },
  kv_bucket: {
    scope: 'kv:write',
    kind: 'buckets',
    parent: 'name',
    get: ({parent}, signal) => read(getKvBucket({path: {bucket: parent}, signal})),
    write: ({key: {parent}, whole, headers}) =>
      read(
        putKvBucket({
          path: {bucket: parent},
          body: some(whole, ['description', 'history', 'max_object_bytes', 'ttl_seconds']),
          headers,
        }),
      ),
  },
};

/** coreObject finds a core object in the list: the operation for one wants its code, which an entry does not have. */
async function coreObject({path: {id}, signal}: {path: {id: string}; signal?: AbortSignal}) {
  const {data, error, response} = await listCoreObjects({signal});
  const found = data?.find((o) => o.id === id);
  if (data && !found) throw new ApiError({status: 404, code: 'not_found'});
  return {data: found, error, response};
}

// Actions that are not an update have an operation of their own as their inverse.
type Inverse = (key: Key, before: Fields) => unknown;

const inverses: Record<string, Inverse> = {
  'user.locked': ({id}) => unlockUser({path: {id}}),
  'user.unlocked': ({id}, was) =>
    lockUser({path: {id}, body: {reason: String(was.lock_reason ?? ''), until: (was.locked_until as string) ?? null}}),
  'user.resigned': ({id}) => reinstateUser({path: {id}}),
  'application.enabled': ({id}) => disableApplication({path: {id}}),
  'application.disabled': ({id}) => enableApplication({path: {id}}),
  'application.mfa_enabled': ({id}) => disableMfa({path: {id}}),
  'application.mfa_disabled': ({id}) => enableMfa({path: {id}}),
  'application.sso_enabled': ({id}) => disableSso({path: {id}}),
  'application.sso_disabled': ({id}) => enableSso({path: {id}}),
  'account.enabled': ({id, parent}) => disableAccount({path: {app_id: parent, id}}),
  'account.disabled': ({id, parent}) => enableAccount({path: {app_id: parent, id}, query: {id}}),
  'node.enabled': ({id}) => disableTreeNode({path: {id}}),
  'node.disabled': ({id}) => enableTreeNode({path: {id}}),
  'connection.enabled': ({id}) => disableConnection({path: {id}}),
  'connection.disabled': ({id}) => enableConnection({path: {id}}),
  'auth_method.enabled': ({id}) => disableAuthMethod({path: {id}}),
  'auth_method.disabled': ({id}) => enableAuthMethod({path: {id}}),
  'event_subscription.paused': ({id}) => resumeEventSubscription({path: {id}}),
  'event_subscription.resumed': ({id}) => pauseEventSubscription({path: {id}}),
  'job.suspended': ({id}) => resumeJob({path: {id}}),
  'job.resumed': ({id}) => suspendJob({path: {id}}),
};

/** inverseOf is the operation that takes an entry's action back, if it has one. */
export function inverseOf(e: AuditEntry): Inverse | undefined {
  return own(inverses, `${e.entity}.${e.action}`);
}

/** targetOf says how the record of an entry is written back; undefined if the entry cannot be undone. */
export function targetOf(e: AuditEntry): Target | undefined {
  const target = own(targets, e.entity);
  if (!target || (!['updated', 'moved'].includes(e.action) && !inverseOf(e))) return undefined;
  return target;
}
