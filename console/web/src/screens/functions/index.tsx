// Functions: code of a tenant that clients call, jobs run and events trigger.
import '../../ui/kit';
import type {Function as Fn} from '@idplatform/sdk';

import {param, setQuery} from '../../lib/router';
import {Button, Status, Tag} from '../../ui/basics';
import {typeWords} from '../../ui/kinds';
import {List, type Column, modifiedColumn, createdColumn, statusFilter} from '../../ui/list';
import {Create} from './create';
import {load} from './load';
import {FunctionPanel} from './panel';
import {t} from './text';

export function FunctionStatus({f}: {f: Fn}) {
  return <Status tone={f.status === '1' ? 'good' : 'off'}>{t(f.status === '1' ? 'enabled' : 'disabled')}</Status>;
}

const eventTypes = (f: Fn) =>
  f.triggers
    .flatMap((x) => x.event_types)
    .map(typeWords)
    .join(', ');

function columns(): Column<Fn>[] {
  return [
    {key: 'name', header: t('name'), sort: 'name', cell: (f) => <span title={f.description}>{f.name}</span>},
    {key: 'status', header: t('status'), width: '112px', cell: (f) => <FunctionStatus f={f} />},
    {key: 'code', header: t('code'), sort: 'code', priority: 2, cell: (f) => <span class="mono muted">{f.code}</span>},
    {key: 'runtime', header: t('runtime'), priority: 2, width: '124px', cell: (f) => <Tag>{t(f.runtime)}</Tag>},
    {key: 'triggers', header: t('triggers'), priority: 3, cell: (f) => <span class="muted">{eventTypes(f)}</span>},
    {
      key: 'revision',
      header: t('revision'),
      priority: 3,
      width: '90px',
      cell: (f) => <span class="num muted">{f.revision || '—'}</span>,
    },
    modifiedColumn({sort: 'time_modified', priority: 2}),
    createdColumn({sort: 'time_created'}),
  ];
}

export default function Functions() {
  const open = param('open');
  const create = (
    <Button kind="primary" icon="plus" scope="functions:write" onClick={() => void setQuery({create: 1})}>
      {t('create')}
    </Button>
  );
  return (
    <>
      <List<Fn>
        name="functions"
        title={t('functions')}
        kind="functions"
        rowId={(f) => f.id}
        rowName={(f) => f.name}
        columns={columns()}
        load={load}
        search={t('search')}
        sort="name[asc]"
        filters={[
          statusFilter(),
          {
            param: 'runtime',
            label: t('runtime'),
            options: (['javascript', 'wasm'] as const).map((value) => ({value, label: t(value)})),
          },
        ]}
        empty={{icon: 'code', title: t('emptyTitle'), text: t('emptyText'), action: create}}
        actions={create}
      />
      {open && <FunctionPanel key={open} id={open} />}
      {param('create') && (
        <Create close={(made) => void setQuery({create: null, ...(made && {open: made.id, tab: null})})} />
      )}
    </>
  );
}
