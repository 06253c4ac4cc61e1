// Resources of an application: what can be granted.
import {useSignal} from '@preact/signals';
import {
  createResource,
  deleteResource,
  getResource,
  listResources,
  updateResource,
  type Resource,
} from '@idplatform/sdk';
import {call, full, type Answer} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {href, param, setQuery} from '../../lib/router';
import {Button, Id, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {List, type Column, modifiedColumn} from '../../ui/list';
import {RecordName} from '../../ui/origin';
import {
  Facts,
  Field,
  FormDialog,
  FormFields,
  PanelLoad,
  RecordMenu,
  RecordPanel,
  faultOf,
  labelsOf,
  useDraft,
  type FieldSpec,
  TextField,
  SelectField,
  wordsIn,
} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {ActionFields} from './actions';
import {NoApps, useAppFilter} from './appfilter';
import {Pick} from './pick';
import {findApps, nameOf} from './sources';
import {t} from './text';

const scope = 'permissions:write';
const kinds = () => (['data', 'api', 'ui'] as const).map((value) => ({value, label: t(`type_${value}`)}));

const columns = (): Column<Resource>[] => [
  {key: 'code', header: t('code'), cell: (r) => <span class="mono">{r.code}</span>},
  {key: 'name', header: t('name'), cell: (r) => r.name, priority: 2},
  {key: 'type', header: t('kind'), cell: (r) => <Tag>{t.word('type_', r.type)}</Tag>, width: '120px'},
  {
    key: 'actions',
    header: t('actions'),
    cell: (r) => r.actions.map((a) => a.code).join(t('comma')) || <span class="faint">{t('anyAction')}</span>,
    priority: 2,
  },
  {key: 'uri', header: t('uri'), cell: (r) => <span class="mono">{r.uri}</span>, priority: 3, optional: true},
  modifiedColumn({priority: 3}),
];

export function Resources() {
  const filter = useAppFilter();
  const app = param('app') || filter.options[0]?.value || '';
  const open = param('open');
  const create = (
    <Button icon="plus" scope="permissions:write" onClick={() => void setQuery({create: 1})}>
      {t('newResource')}
    </Button>
  );
  if (!app) return filter.ready ? <NoApps /> : null;
  return (
    <>
      <List<Resource>
        key={app}
        name="resources"
        title={t('resources')}
        kind="resources"
        header={false}
        columns={columns()}
        rowId={(r) => r.id}
        rowName={(r) => r.code}
        load={(query, token, signal) =>
          call(
            listResources({
              signal,
              query: {
                application_id: query.filters.app || app,
                type: (query.filters.type || undefined) as 'data',
                keyword: query.q || undefined,
                page_size: 100,
                page_token: token,
                count: token ? 'false' : undefined,
              },
            }),
          )
        }
        search={t('code')}
        filters={[filter, {param: 'type', label: t('kind'), options: kinds()}]}
        empty={{
          icon: 'box',
          title: t('noResources', {app: nameOf('application', app)}),
          text: t('noResourcesText'),
          action: create,
        }}
      />
      {!open && <div class="corner">{create}</div>}
      {open && (
        <PanelLoad
          key={open}
          id={open}
          load={(signal) => full(getResource({path: {id: open}, query: {application_id: app}, signal}))}
        >
          {(answer, again) => <ResourcePanel answer={answer} again={again} />}
        </PanelLoad>
      )}
      {param('create') && (
        <NewResource
          app={app}
          close={(r) =>
            void setQuery(
              {create: null, app: r?.application_id ?? param('app'), open: r?.id ?? open},
              {replace: true, force: true},
            )
          }
        />
      )}
    </>
  );
}

const fields = (r: Resource): FieldSpec<Resource>[] => [
  {field: 'name', label: t('name')},
  ...(r.type === 'api' ? [{field: 'uri' as const, label: t('uri')}] : []),
  {field: 'description', label: t('description'), wide: true},
];

function ResourcePanel({answer, again}: {answer: Answer<Resource>; again: () => void}) {
  const {id, application_id} = answer.data;
  const path = {id},
    query = {application_id};
  const draft = useDraft<Resource>(answer, {
    scope,
    kind: 'resources',
    load: () => full(getResource({path, query})),
    save: (patch, etag) =>
      full(updateResource({path, body: patch, headers: {'If-Match': etag}})).then(() =>
        full(getResource({path, query})),
      ),
    saved: (now) => t('savedDone', {name: now.name || now.code}),
    again,
  });
  const r = draft.base.value;
  const who = {mode: 'who', app: application_id, on: `${r.type}:${r.code}`, do: r.actions[0]?.code};
  return (
    <RecordPanel
      title={r.name || r.code}
      subtitle={
        <span class="row">
          <span class="mono clip">{r.code}</span>
          <Tag>{t.word('type_', r.type)}</Tag>
        </span>
      }
      actions={
        <RecordMenu
          record={r}
          file={r.code}
          scope={scope}
          items={[{label: t('whoCan'), icon: 'compass', href: href('explorer', [], who)}]}
          removal={{
            title: t('deleteTitle', {name: r.code}),
            text: t('deleteResourceText'),
            typed: r.code,
            record: r,
            send: () => call(deleteResource({path})),
            said: t('deletedDone', {name: r.code}),
            kinds: ['resources'],
          }}
        />
      }
      record={r}
      entity="resource"
      draft={draft}
      labels={{...labelsOf(fields(r)), actions: t('actions')}}
      overview={() => (
        <>
          <section class="section">
            <FormFields draft={draft} fields={fields(r)} />
          </section>
          <section class="section">
            <h3>{t('actions')}</h3>
            <ActionFields draft={draft} />
          </section>
          <section class="section">
            <Facts
              facts={[
                [t('application'), <RecordName kind="application" id={application_id} />],
                [t('global'), r.is_global === '1' ? ui('yes') : ui('no')],
                [t('created'), dateTime(r.time_created)],
                [t('id'), <Id>{id}</Id>],
              ]}
            />
          </section>
        </>
      )}
    />
  );
}

function NewResource({app, close}: {app: string; close: (made?: Resource) => void}) {
  const body = useSignal({
    application_id: app,
    type: 'data' as Resource['type'],
    code: '',
    name: '',
    uri: '',
    actions: 'read, write',
  });
  const set = (v: Partial<typeof body.value>) => {
    body.value = {...body.value, ...v};
  };
  const send = (key: string) => {
    const {uri, actions, ...rest} = body.value;
    const codes = wordsIn(actions);
    return call(
      createResource({
        headers: {'Idempotency-Key': key},
        body: {
          ...rest,
          ...(rest.type === 'api' && uri ? {uri} : {}),
          actions: codes.map((code) => ({code, description: ''})),
        },
      }),
    );
  };
  return (
    <FormDialog
      title={t('newResource')}
      yes={t('createDo')}
      submit={send}
      close={() => close()}
      done={(made) => {
        changed('resources');
        toast(t('createdDone', {name: made.code}));
        close(made);
      }}
    >
      {(error) => {
        const text = (member: 'code' | 'name' | 'uri' | 'actions', label: string, help?: string) => (
          <TextField
            autofocus={member === 'code'}
            label={label}
            help={help}
            error={faultOf(error, member)}
            value={body.value[member]}
            set={(v) => set({[member]: v})}
          />
        );
        return (
          <div class="grid-2">
            <Field label={t('application')} error={faultOf(error, 'application_id')}>
              {(p) => (
                <Pick
                  label={t('choose')}
                  input={p}
                  value={body.value.application_id}
                  shown={nameOf('application', body.value.application_id)}
                  search={findApps}
                  choose={(v) => set({application_id: v})}
                />
              )}
            </Field>
            <SelectField label={t('kind')} value={body.value.type} set={(v) => set({type: v as 'data'})}>
              {kinds().map((o) => (
                <option key={o.value} value={o.value}>
                  {o.label}
                </option>
              ))}
            </SelectField>
            {text('code', t('code'), t('codeHelp'))}
            {text('name', t('name'))}
            {text('actions', t('actions'), t('actionsNew'))}
            {body.value.type === 'api' && text('uri', t('uri'), '/orders/{id}, /files/**')}
          </div>
        );
      }}
    </FormDialog>
  );
}
