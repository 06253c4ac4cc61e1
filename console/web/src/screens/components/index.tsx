// Components: reusable pieces of pages and flows, each with a schema for its settings.
import '../../ui/kit';
import {listComponents, type Component} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {param, setQuery} from '../../lib/router';
import {Button, Status, Tag} from '../../ui/basics';
import {List, type Column, type Page, type Query, modifiedColumn, createdColumn, statusFilter} from '../../ui/list';
import {Create} from './create';
import {ComponentPanel} from './panel';
import {t} from './text';

export const scope = 'functions:write';

function load(query: Query, pageToken: string | undefined, signal: AbortSignal): Promise<Page<Component>> {
  return call(
    listComponents({
      signal,
      query: {
        keyword: query.q || undefined,
        type: query.filters.type || undefined,
        status: (query.filters.status || undefined) as Component['status'] | undefined,
        page_sort: query.sort || undefined,
        page_size: 100,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}

/** findTypes offers types that the newest components have, and what was typed as it is. */
async function findTypes(words: string, signal: AbortSignal) {
  const query = {page_size: 200, page_sort: 'time_created[desc]', count: 'false'} as const;
  const {items} = await call(listComponents({query, signal}));
  const used = [...new Set((items ?? []).map((c) => c.type))].filter((type) => type.includes(words)).sort();
  return [...new Set([...used, ...(words ? [words] : [])])].map((type) => ({value: type, label: type}));
}

export function ComponentStatus({status}: {status: Component['status']}) {
  return <Status tone={status === '1' ? 'good' : 'off'}>{t(status === '1' ? 'enabled' : 'disabled')}</Status>;
}

function columns(): Column<Component>[] {
  return [
    {key: 'name', header: t('name'), sort: 'name', cell: (c) => c.name},
    {key: 'code', header: t('code'), sort: 'code', cell: (c) => <span class="mono">{c.code}</span>, priority: 2},
    {key: 'type', header: t('type'), cell: (c) => <Tag>{c.type}</Tag>, width: '160px', priority: 3},
    {key: 'status', header: t('status'), cell: (c) => <ComponentStatus status={c.status} />, width: '112px'},
    {
      key: 'published',
      header: t('published'),
      cell: (c) =>
        c.component_version ? (
          <span title={dateTime(c.time_published)}>{t('versionN', {n: c.component_version})}</span>
        ) : (
          <span class="faint">{t('notPublished')}</span>
        ),
      width: '120px',
      priority: 2,
    },
    modifiedColumn({sort: 'time_modified', priority: 3}),
    createdColumn({sort: 'time_created'}),
  ];
}

export default function Components() {
  const open = param('open');
  const add = (
    <Button kind="primary" icon="plus" scope={scope} onClick={() => void setQuery({create: 1})}>
      {t('create')}
    </Button>
  );
  return (
    <>
      <List<Component>
        name="components"
        title={t('title')}
        kind="components"
        rowId={(c) => c.id}
        rowName={(c) => c.name}
        columns={columns()}
        load={load}
        search={t('search')}
        sort="name[asc]"
        filters={[
          statusFilter(),
          {param: 'type', label: t('type'), options: [], find: findTypes, shown: (type) => type},
        ]}
        actions={add}
        empty={{icon: 'puzzle', title: t('emptyTitle'), text: t('emptyText'), action: add}}
      />
      {open && <ComponentPanel key={open} id={open} />}
      {param('create') && <Create close={() => void setQuery({create: null}, {replace: true})} />}
    </>
  );
}
