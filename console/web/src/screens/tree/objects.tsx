// Core objects: each is a relation with a tree of its own.
import {useSignal} from '@preact/signals';
import {createCoreObject, deleteCoreObject, listCoreObjects, updateCoreObject, type CoreObject} from '@idplatform/sdk';
import {ApiError, call, full, type Answer} from '../../lib/api';
import {ago} from '../../lib/format';
import {changed, type Loading} from '../../lib/load';
import {go, href, param, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Id, Late, Status} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {
  Facts,
  FormDialog,
  FormFields,
  PanelLoad,
  RecordMenu,
  RecordPanel,
  faultOf,
  labelsOf,
  useDraft,
  type FieldSpec,
  type Removal,
  TextField,
} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {t} from './text';

const scope = 'organization:write';

export function Objects({state, again}: {state: Loading<CoreObject[]>; again: () => void}) {
  const {value, error, busy} = state;
  const open = param('open');
  const create = (
    <Button kind="primary" icon="plus" scope="organization:write" onClick={() => void setQuery({new: 1})}>
      {t('createTree')}
    </Button>
  );
  return (
    <>
      <section class="screen" aria-label={t('trees')}>
        <header class="screen-head">
          <h1>
            {t('trees')}
            {value && <span class="count num">{ui('showing', {n: value.length})}</span>}
          </h1>
          <div class="actions">{create}</div>
        </header>
        <div class="scroll">
          {error && (
            <div class="tree-note">
              <Failed error={error} again={again} />
            </div>
          )}
          {!value && !error && (
            <div class="tree-note">
              <Late busy={busy} lines={6}>
                {null}
              </Late>
            </div>
          )}
          {value?.length === 0 && (
            <Blank
              icon="tree"
              title={t('emptyTitle')}
              action={
                <>
                  {create}
                  <a class="btn" href={href('start')}>
                    {t('toSample')}
                  </a>
                </>
              }
            >
              {t('emptyText')}
            </Blank>
          )}
          {value && value.length > 0 && (
            <ul class="tree-objects">
              {value.map((o) => (
                <li key={o.id} class="card">
                  <div class="row">
                    <a class="title clip grow" href={href('tree', [o.code])}>
                      {o.name}
                    </a>
                    <Button
                      small
                      kind="ghost"
                      icon="edit"
                      label={t('editTree', {name: o.name})}
                      onClick={() => void setQuery({open: o.id})}
                    />
                  </div>
                  <span class="mono faint clip">{o.code}</span>
                  {o.description && <p class="muted">{o.description}</p>}
                  <div class="row spread foot">
                    <span class="muted num">{t('nodesCount', {n: o.node_count})}</span>
                    <span class="row">
                      {o.status === '0' && <Status tone="off">{t('disabled')}</Status>}
                      <span class="faint">{ago(o.time_modified)}</span>
                    </span>
                  </div>
                </li>
              ))}
            </ul>
          )}
        </div>
      </section>
      {open && <ObjectPanel key={open} id={open} />}
      {param('new') && <CreateObject close={() => void setQuery({new: null}, {replace: true})} />}
    </>
  );
}

async function load(id: string): Promise<Answer<CoreObject>> {
  const a = await full(listCoreObjects());
  const object = (a.data ?? []).find((o) => o.id === id);
  if (!object) throw new ApiError({status: 404, code: 'not_found'});
  return {...a, data: object, etag: `"${object.version}"`};
}

const fields = (): FieldSpec<CoreObject>[] => [
  {field: 'name', label: t('name')},
  {field: 'seq', label: t('seq'), kind: 'number'},
  {
    field: 'status',
    label: t('status'),
    kind: 'select',
    options: [
      {value: '1', label: t('active')},
      {value: '0', label: t('disabled')},
    ],
  },
  {field: 'description', label: t('description'), kind: 'textarea'},
  {field: 'free_ext_props', label: t('freeProps'), kind: 'json'},
];

export function ObjectPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={() => load(id)}>
      {(answer, again) => <LoadedObject answer={answer} again={again} />}
    </PanelLoad>
  );
}

function LoadedObject({answer, again}: {answer: Answer<CoreObject>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<CoreObject>(answer, {
    scope,
    kind: 'objects',
    load: () => load(id),
    save: (patch, etag) => full(updateCoreObject({path: {id}, body: patch, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
    again,
  });
  const object = draft.base.value;
  return (
    <RecordPanel
      title={object.name}
      subtitle={<span class="mono">{object.code}</span>}
      actions={
        <RecordMenu
          record={object}
          file={object.code}
          scope={scope}
          items={[{label: t('openTree'), icon: 'tree', href: href('tree', [object.code])}]}
          removal={removal(object)}
        />
      }
      record={object}
      entity="core_object"
      draft={draft}
      labels={labelsOf(fields())}
      overview={() => (
        <>
          <FormFields draft={draft} fields={fields()} />
          <Facts
            facts={[
              [t('id'), <Id>{object.id}</Id>],
              [t('nodes'), <a href={href('tree', [object.code])}>{t('nodesCount', {n: object.node_count})}</a>],
              [t('modified'), ago(object.time_modified)],
            ]}
          />
        </>
      )}
    />
  );
}

function removal(object: CoreObject): Removal {
  const send = (dry?: 'true') =>
    call(
      deleteCoreObject({path: {id: object.id}, query: {dry_run: dry}, headers: {'If-Match': `"${object.version}"`}}),
    );
  return {
    title: t('deleteTitle', {name: object.name}),
    text: t('deleteTreeText'),
    typed: object.code,
    record: object,
    dry: () => send('true'),
    send: () => send(),
    counted: () => href('tree', [object.code]),
    refusal: (e) => (e.problem.code === 'has_children' ? t('treeHasNodes', {n: object.node_count - 1}) : e.message),
    said: t('deletedDone', {name: object.name}),
    kinds: ['objects'],
    leave: () => go(href('tree'), {force: true}),
  };
}

function CreateObject({close}: {close: () => void}) {
  const body = useSignal({code: '', name: '', description: ''});
  return (
    <FormDialog
      title={t('createTree')}
      yes={t('createDo')}
      submit={(key) => call(createCoreObject({body: body.value, headers: {'Idempotency-Key': key}}))}
      close={close}
      done={async (made) => {
        changed('objects');
        toast(t('createdDone', {name: made.name}));
        await go(href('tree', [made.code]), {force: true});
      }}
    >
      {(error) => {
        const field = (name: 'code' | 'name' | 'description', label: string, help?: string) => (
          <TextField
            label={label}
            help={help}
            error={faultOf(error, name)}
            wide={name === 'description'}
            value={body.value[name]}
            set={(v) => {
              body.value = {...body.value, [name]: v};
            }}
          />
        );
        return (
          <>
            <p class="muted">{t('createTreeText')}</p>
            <div class="grid-2">
              {field('name', t('name'))}
              {field('code', t('code'), t('codeTreeHelp'))}
              {field('description', t('description'))}
            </div>
          </>
        );
      }}
    </FormDialog>
  );
}
