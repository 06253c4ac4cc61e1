// Who has rules: people, nodes, trees, groups, applications, everyone.
import {useSignal} from '@preact/signals';
import {createAuthUnit, getAuthUnit, listAuthUnits, type AuthUnit} from '@idplatform/sdk';
import {call} from '../../lib/api';

import {changed} from '../../lib/load';
import {param, setQuery} from '../../lib/router';
import {Button} from '../../ui/basics';
import {List, type Column, type Query, modifiedColumn} from '../../ui/list';
import {FormDialog, PanelLoad, faultOf, TextField} from '../../ui/record';
import {Party, unitName} from './sentence';
import {t} from './text';
import {UnitPanel} from './unit';

const types = ['user', 'node', 'core_object', 'application', 'group', 'everyone'] as const;

function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  return call(
    listAuthUnits({
      signal,
      query: {
        keyword: query.q || undefined,
        identity_type: (query.filters.kind || undefined) as 'user',
        page_sort: query.sort || undefined,
        page_size: 100,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}

const columns = (): Column<AuthUnit>[] => [
  {
    key: 'name',
    header: t('who'),
    cell: (u) => <Party type={u.identity_type} id={u.identity_id} name={u.identity_name} />,
  },
  {
    key: 'type',
    header: t('kind'),
    width: '150px',
    cell: (u) => <span class="muted">{t(u.identity_type)}</span>,
    priority: 2,
  },
  {key: 'rules', header: t('ownRules'), width: '110px', cell: (u) => <span class="num">{u.rule_count}</span>},
  modifiedColumn({sort: 'time_modified', priority: 3}),
];

export function Units() {
  const open = param('open');
  const create = (
    <Button icon="plus" scope="permissions:write" onClick={() => void setQuery({create: 1})}>
      {t('newGroup')}
    </Button>
  );
  return (
    <>
      <List<AuthUnit>
        name="units"
        title={t('units')}
        kind="units"
        header={false}
        columns={columns()}
        load={load}
        rowId={(u) => u.id}
        rowName={unitName}
        search={t('name')}
        filters={[{param: 'kind', label: t('kind'), options: types.map((value) => ({value, label: t(value)}))}]}
        empty={{icon: 'users', title: t('noUnits'), text: t('noUnitsText'), action: create}}
      />
      {!open && <div class="corner">{create}</div>}
      {open && (
        <PanelLoad key={open} id={open} load={(signal) => call(getAuthUnit({path: {id: open}, signal}))}>
          {(unit, again) => <UnitPanel unit={unit} again={again} />}
        </PanelLoad>
      )}
      {param('create') && (
        <NewGroup close={(id) => void setQuery({create: null, open: id || open}, {replace: true, force: true})} />
      )}
    </>
  );
}

function NewGroup({close}: {close: (id?: string) => void}) {
  const name = useSignal(''),
    description = useSignal('');
  const send = (key: string) => {
    const identity_id = name.value.trim();
    return call(
      createAuthUnit({
        headers: {'Idempotency-Key': key},
        body: {identity_type: 'group', identity_id, identity_name: identity_id, description: description.value},
      }),
    );
  };
  return (
    <FormDialog
      title={t('newGroup')}
      yes={t('createDo')}
      submit={send}
      close={() => close()}
      done={(made) => {
        changed('units');
        close(made.id);
      }}
    >
      {(error) => (
        <>
          <p class="muted">{t('groupText')}</p>
          <TextField
            label={t('name')}
            error={faultOf(error, 'identity_name') ?? faultOf(error, 'identity_id')}
            value={name.value}
            set={(v) => {
              name.value = v;
            }}
          />
          <TextField
            label={t('description')}
            value={description.value}
            set={(v) => {
              description.value = v;
            }}
          />
        </>
      )}
    </FormDialog>
  );
}
