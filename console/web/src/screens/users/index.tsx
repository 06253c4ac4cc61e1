// Users: the list, and the panel of one.
import '../../ui/kit';
import {listUsers, type User} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago} from '../../lib/format';
import {param, setQuery} from '../../lib/router';
import {Avatar, Button, Status} from '../../ui/basics';
import {List, type Column, type Query, modifiedColumn, createdColumn} from '../../ui/list';
import {BulkActions} from './bulk';
import {ExportDialog} from './bulk/export';
import {Returning} from './bulk/running';
import {t as bulk} from './bulk/text';
import {Create} from './create';
import {filtersOf} from './filters';
import {ImportDialog} from './import';
import {UserPanel} from './panel';
import {t} from './text';

const pageSize = 100;

export function userName(u: User): string {
  return u.display_name || u.username;
}

/** UserStatus is the state of a user in a word. A lock is said first: it is what keeps somebody from logging in. */
export function UserStatus({user: u}: {user: User}) {
  if (u.locked) return <Status tone="bad">{t('isLocked')}</Status>;
  if (u.status === 'resigned') return <Status tone="off">{t('resigned')}</Status>;
  if (u.status === '0') return <Status tone="off">{t('disabled')}</Status>;
  return <Status tone="good">{t('active')}</Status>;
}

function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  return call(
    listUsers({
      signal,
      query: {
        ...filtersOf(query),
        page_sort: query.sort || undefined,
        page_size: pageSize,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}

function columns(): Column<User>[] {
  return [
    {
      key: 'name',
      header: t('display'),
      sort: 'display_name',
      cell: (u) => (
        <span class="row">
          <Avatar name={userName(u)} src={u.avatar_url} />
          <span class="clip">{userName(u)}</span>
        </span>
      ),
    },
    {
      key: 'username',
      header: t('username'),
      sort: 'username',
      cell: (u) => <span class="mono">{u.username}</span>,
      priority: 2,
    },
    {key: 'email', header: t('email'), sort: 'email', cell: (u) => u.email, priority: 3, width: '25%'},
    {key: 'mobile', header: t('mobile'), cell: (u) => <span class="num">{u.mobile}</span>, priority: 3, optional: true},
    {
      key: 'number',
      header: t('number'),
      cell: (u) => <span class="num">{u.employee_number}</span>,
      priority: 3,
      width: '142px',
    },
    {key: 'status', header: t('status'), cell: (u) => <UserStatus user={u} />, width: '112px'},
    {
      key: 'login',
      header: t('lastLogin'),
      cell: (u) => ago(u.time_last_login),
      priority: 3,
      width: '140px',
      optional: true,
    },
    modifiedColumn({sort: 'time_modified', priority: 2}),
    createdColumn({sort: 'time_created'}),
  ];
}

export default function Users() {
  const open = param('open');
  return (
    <>
      <List<User>
        name="users"
        title={t('users')}
        kind="users"
        rowId={(u) => u.id}
        rowName={userName}
        columns={columns()}
        load={load}
        search={t('search')}
        sort="time_created[desc]"
        filters={[
          {
            param: 'status',
            label: t('status'),
            options: [
              {value: '1', label: t('active')},
              {value: '0', label: t('disabled')},
              {value: 'resigned', label: t('resigned')},
            ],
          },
          {
            param: 'locked',
            label: t('locked'),
            options: [
              {value: 'true', label: t('isLocked')},
              {value: 'false', label: t('notLocked')},
            ],
          },
        ]}
        empty={{
          icon: 'users',
          title: t('emptyTitle'),
          text: t('emptyText'),
          action: (
            <Button kind="primary" icon="plus" scope="users:write" onClick={() => void setQuery({create: 1})}>
              {t('create')}
            </Button>
          ),
        }}
        actions={
          <>
            <Button icon="download" onClick={() => void setQuery({export: 1})}>
              {bulk('export')}
            </Button>
            <Button icon="upload" scope="users:write" onClick={() => void setQuery({import: 1})}>
              {t('import')}
            </Button>
            <Button kind="primary" icon="plus" scope="users:write" onClick={() => void setQuery({create: 1})}>
              {t('create')}
            </Button>
          </>
        }
        matching
        bulk={(selected, clear, all) => <BulkActions selected={selected} clear={clear} all={all} />}
      />
      {open && <UserPanel key={open} id={open} />}
      <Returning />
      {param('export') && (
        <ExportDialog
          query={{q: param('q'), sort: '', filters: {status: param('status'), locked: param('locked')}}}
          close={() => void setQuery({export: null}, {replace: true})}
        />
      )}
      {param('import') && <ImportDialog close={() => void setQuery({import: null}, {replace: true})} />}
      {param('create') && (
        <Create close={(id) => void setQuery({create: null, open: id || open}, {replace: true, force: true})} />
      )}
    </>
  );
}
