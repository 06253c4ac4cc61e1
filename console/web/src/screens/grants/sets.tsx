// Resource sets: resources that are granted together.
import {useSignal} from '@preact/signals';
import {
  addResourceSetMembers,
  createResourceSet,
  deleteResourceSet,
  getResourceSet,
  listResourceSetMembers,
  listResourceSets,
  removeResourceSetMember,
  type ResourceSet,
  type ResourceSetMember,
} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {usePaged} from '../../lib/pages';
import {param, place, setQuery} from '../../lib/router';
import {Button, Failed, Id, Late, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {List, type Column, modifiedColumn} from '../../ui/list';
import {RecordName} from '../../ui/origin';
import {Facts, FormDialog, PanelLoad, RecordMenu, RecordPanel, faultOf, TextField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {carryOut} from '../../ui/undo';
import {NoApps, useAppFilter} from './appfilter';
import {Pick} from './pick';
import {nameOf, resourcesOf} from './sources';
import {t} from './text';

const scope = 'permissions:write';

const columns = (): Column<ResourceSet>[] => [
  {key: 'code', header: t('code'), cell: (s) => <span class="mono">{s.code}</span>},
  {key: 'name', header: t('name'), cell: (s) => s.name, priority: 2},
  {key: 'members', header: t('resources'), width: '120px', cell: (s) => <span class="num">{s.member_count}</span>},
  modifiedColumn({priority: 3}),
];

export function Sets() {
  const filter = useAppFilter();
  const app = param('app') || filter.options[0]?.value || '';
  const open = param('open');
  const create = (
    <Button icon="plus" scope="permissions:write" onClick={() => void setQuery({create: 1})}>
      {t('newSet')}
    </Button>
  );
  if (!app) return filter.ready ? <NoApps /> : null;
  return (
    <>
      <List<ResourceSet>
        key={app}
        name="sets"
        title={t('sets')}
        kind="sets"
        header={false}
        columns={columns()}
        rowId={(s) => s.id}
        rowName={(s) => s.code}
        load={(query, token, signal) =>
          call(
            listResourceSets({
              signal,
              query: {
                application_id: query.filters.app || app,
                keyword: query.q || undefined,
                page_size: 100,
                page_token: token,
                count: token ? 'false' : undefined,
              },
            }),
          )
        }
        search={t('code')}
        filters={[filter]}
        empty={{
          icon: 'box',
          title: t('noSets', {app: nameOf('application', app)}),
          text: t('noSetsText'),
          action: create,
        }}
      />
      {!open && <div class="corner">{create}</div>}
      {open && (
        <PanelLoad key={open} id={open} load={(signal) => call(getResourceSet({path: {id: open}, signal}))}>
          {(set, again) => <SetPanel set={set} again={again} />}
        </PanelLoad>
      )}
      {param('create') && (
        <NewSet
          app={app}
          close={(id) => void setQuery({create: null, open: id || open}, {replace: true, force: true})}
        />
      )}
    </>
  );
}

function SetPanel({set, again}: {set: ResourceSet; again: () => void}) {
  const path = {id: set.id};
  return (
    <RecordPanel
      title={set.name || set.code}
      subtitle={<span class="mono">{set.code}</span>}
      actions={
        <RecordMenu
          record={set}
          file={set.code}
          scope={scope}
          removal={{
            title: t('deleteTitle', {name: set.code}),
            text: t('deleteSetText'),
            typed: set.code,
            record: set,
            send: () => call(deleteResourceSet({path})),
            said: t('deletedDone', {name: set.code}),
            kinds: ['sets'],
          }}
        />
      }
      record={set}
      entity="resource_set"
      overview={() => (
        <>
          <Members set={set} again={again} />
          <section class="section">
            <Facts
              facts={[
                [t('application'), <RecordName kind="application" id={set.application_id} />],
                [t('description'), set.description],
                [t('created'), dateTime(set.time_created)],
                [t('id'), <Id>{set.id}</Id>],
              ]}
            />
          </section>
        </>
      )}
    />
  );
}

function Members({set, again}: {set: ResourceSet; again: () => void}) {
  const members = usePaged(`${set.id} members`, (page_token, signal) =>
    call(listResourceSetMembers({path: {id: set.id}, query: {page_size: 200, page_token, count: 'false'}, signal})),
  );
  const reload = members.again;
  const {value, error, busy} = members.state.value;
  const after = () => {
    reload();
    again();
    changed('sets');
  };
  const add = (type: string, code: string, actions: string[] = ['*']) =>
    call(
      addResourceSetMembers({path: {id: set.id}, body: {resource_type: type as 'data', resource_code: code, actions}}),
    );
  const drop = (m: ResourceSetMember) => call(removeResourceSetMember({path: {sid: set.id, mid: m.id}}));
  if (error) return <Failed error={error} again={reload} />;
  return (
    <Late busy={busy && !value}>
      <section class="section">
        <h3>{t('resources')}</h3>
        <Pick
          label={t('addResource')}
          value=""
          search={async (words, signal) =>
            (await resourcesOf(set.application_id, words, signal))
              .slice(0, 12)
              .map((r) => ({
                value: `${r.type}:${r.code}`,
                label: r.name || r.code,
                about: `${t.word('type_', r.type)} ${r.code}`,
                icon: 'box' as const,
              }))
          }
          choose={(v) => {
            const [type = '', code = ''] = [v.slice(0, v.indexOf(':')), v.slice(v.indexOf(':') + 1)];
            const back = async () => {
              const query = {resource_code: code, resource_type: type as 'data'};
              const page = await call(listResourceSetMembers({path: {id: set.id}, query}));
              if (page.items[0]) await drop(page.items[0]);
            };
            void carryOut({send: () => add(type, code), back, said: t('memberAdded'), after});
          }}
        />
        {value?.items.length ? (
          <ul class="grants-rules">
            {value.items.map((m) => (
              <li key={m.id} class="row spread">
                <span class="row">
                  <code class="clip">{m.resource_code}</code>
                  <Tag>{t.word('type_', m.resource_type)}</Tag>
                  <span class="muted">{m.actions.includes('*') ? t('allActions') : m.actions.join(t('comma'))}</span>
                </span>
                <Button
                  small
                  kind="ghost"
                  icon="x"
                  label={t('removeMember')}
                  scope="permissions:write"
                  onClick={() =>
                    void carryOut({
                      send: () => drop(m),
                      back: () => add(m.resource_type, m.resource_code, m.actions),
                      said: t('memberRemoved'),
                      after,
                    })
                  }
                />
              </li>
            ))}
          </ul>
        ) : (
          <p class="muted">{t('emptySet')}</p>
        )}
        {value?.more && (
          <Button small busy={busy} onClick={members.next}>
            {ui('showMore')}
          </Button>
        )}
      </section>
    </Late>
  );
}

function NewSet({app, close}: {app: string; close: (id?: string) => void}) {
  const code = useSignal(''),
    name = useSignal('');
  const send = (key: string) =>
    call(
      createResourceSet({
        body: {application_id: app, code: code.value, name: name.value},
        headers: {'Idempotency-Key': key, 'X-Tenant-Id': place.value.tenant},
      }),
    );
  return (
    <FormDialog
      title={t('newSet')}
      yes={t('createDo')}
      submit={send}
      close={() => close()}
      done={(made) => {
        changed('sets');
        toast(t('createdDone', {name: made.code}));
        close(made.id);
      }}
    >
      {(error) => (
        <div class="grid-2">
          <TextField
            label={t('code')}
            help={t('codeHelp')}
            error={faultOf(error, 'code')}
            value={code.value}
            set={(v) => {
              code.value = v;
            }}
          />
          <TextField
            label={t('name')}
            error={faultOf(error, 'name')}
            value={name.value}
            set={(v) => {
              name.value = v;
            }}
          />
        </div>
      )}
    </FormDialog>
  );
}
