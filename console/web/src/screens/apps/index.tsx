// Applications: the list, the gallery of templates, and the panel of one.
import '../../ui/kit';
import {listApplications, type Application} from '@idplatform/sdk';
import {call} from '../../lib/api';

import {param, setQuery} from '../../lib/router';
import {Avatar, Button, Status} from '../../ui/basics';
import {List, type Column, type Query, modifiedColumn, createdColumn, statusFilter} from '../../ui/list';
import {Create} from './create';
import {AppPanel} from './panel';
import {categories, categoryName, protocolName, t} from './text';

const pageSize = 100;

/** logo is a picture that can be shown: the page's policy allows its own host and data alone. */
export function logo(text: string): string | undefined {
  return /^(\/v1\/|data:image\/)/.test(text) ? text : undefined;
}

export function AppStatus({app}: {app: {status: string}}) {
  return app.status === '1' ? <Status tone="good">{t('enabled')}</Status> : <Status tone="off">{t('disabled')}</Status>;
}

function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  const {status, type, category} = query.filters;
  return call(
    listApplications({
      signal,
      query: {
        keyword: query.q || undefined,
        status: (status || undefined) as '1' | undefined,
        type: (type || undefined) as '1' | undefined,
        category: (category || undefined) as '1' | undefined,
        page_sort: query.sort || undefined,
        page_size: pageSize,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}

function columns(): Column<Application>[] {
  return [
    {
      key: 'name',
      header: t('name'),
      sort: 'name',
      cell: (a) => (
        <span class="row">
          <Avatar icon="app" name={a.name} src={logo(a.logo)} />
          <span class="clip">{a.name}</span>
        </span>
      ),
    },
    {key: 'protocol', header: t('protocol'), cell: (a) => protocolName(a.protocol_type), priority: 2, width: '150px'},
    {key: 'category', header: t('category'), cell: (a) => categoryName(a.category), priority: 3, width: '150px'},
    {
      key: 'template',
      header: t('template'),
      cell: (a) => <span class="muted">{a.template_id}</span>,
      priority: 3,
      width: '150px',
      optional: true,
    },
    {
      key: 'client',
      header: t('clientId'),
      cell: (a) => <span class="mono">{a.client_id}</span>,
      priority: 3,
      optional: true,
    },
    {key: 'status', header: t('status'), cell: (a) => <AppStatus app={a} />, width: '112px'},
    modifiedColumn({sort: 'time_modified', priority: 2}),
    createdColumn({sort: 'time_created'}),
  ];
}

export default function Applications() {
  const open = param('open'),
    create = param('create');
  const add = (
    <Button kind="primary" icon="plus" scope="applications:write" onClick={() => void setQuery({create: 'gallery'})}>
      {t('create')}
    </Button>
  );
  return (
    <>
      <List<Application>
        name="apps"
        title={t('apps')}
        kind="apps"
        rowId={(a) => a.id}
        rowName={(a) => a.name}
        columns={columns()}
        load={load}
        search={t('search')}
        sort="time_created[desc]"
        filters={[
          statusFilter(),
          {
            param: 'type',
            label: t('type'),
            options: [
              {value: '1', label: t('type1')},
              {value: '2', label: t('type2')},
            ],
          },
          {
            param: 'category',
            label: t('category'),
            options: Object.entries(categories()).map(([value, label]) => ({value, label})),
          },
        ]}
        empty={{icon: 'app', title: t('emptyTitle'), text: t('emptyText'), action: add}}
        actions={add}
      />
      {open && <AppPanel key={open} id={open} />}
      {create && <Create template={create} />}
    </>
  );
}
