// Authentication methods: the ways in which people prove who they are.
import {useSignal} from '@preact/signals';
import {
  createAuthMethod,
  deleteAuthMethod,
  disableAuthMethod,
  enableAuthMethod,
  getAuthMethod,
  listAuthMethods,
  updateAuthMethod,
  type AuthMethod,
  type AuthMethodInputWritable,
  type AuthMethodPatchWritable,
} from '@idplatform/sdk';
import {call, full, type Answer, type ApiError} from '../../lib/api';

import {changed} from '../../lib/load';
import {allPages} from '../../lib/pages';
import {same} from '../../lib/patch';
import {hrefQuery, param, setQuery} from '../../lib/router';
import {Button} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {JsonField} from '../../ui/jsonfield';
import {List, type Query, modifiedColumn, statusFilter} from '../../ui/list';
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
  SelectField,
  recordFacts,
} from '../../ui/record';
import {carryOut} from '../../ui/undo';
import {Frame} from './frame';
import {ConnectionPicker} from './picker';
import {State, scope} from './shared';
import {t} from './text';
import {Uses, refusal} from './uses';

const types = ['password', 'sms', 'mail', 'otp', 'webauthn', 'social', 'enterprise'] as const;
type Type = (typeof types)[number];

export const methodType = (type: Type) => t.word('method_', type);

/** allMethods reads every page: templates name methods by their codes. */
export function allMethods(query: {status?: '1'; type?: Type} = {}, signal?: AbortSignal): Promise<AuthMethod[]> {
  return allPages((page_token) =>
    call(
      listAuthMethods({query: {...query, page_size: 200, page_token, page_sort: 'name[asc]', count: 'false'}, signal}),
    ),
  );
}

export function Methods() {
  const total = useSignal<number | undefined>(undefined);
  const open = param('open');
  const load = async (query: Query, pageToken: string | undefined, signal: AbortSignal) => {
    const page = await call(
      listAuthMethods({
        signal,
        query: {
          keyword: query.q || undefined,
          status: (query.filters.status || undefined) as AuthMethod['status'] | undefined,
          type: (query.filters.type || undefined) as Type | undefined,
          page_sort: 'name[asc]',
          page_size: 100,
          page_token: pageToken,
          count: pageToken ? 'false' : undefined,
        },
      }),
    );
    total.value = page.total ?? total.value;
    return page;
  };
  const add = (
    <Button kind="primary" icon="plus" scope={scope} onClick={() => void setQuery({create: 1})}>
      {t('newMethod')}
    </Button>
  );
  return (
    <>
      <Frame part="methods" total={total.value} actions={add}>
        <List<AuthMethod>
          name="auth-methods"
          title={t('methods')}
          header={false}
          kind="auth-methods"
          rowId={(m) => m.id}
          rowName={(m) => m.name}
          load={load}
          search={t('searchMethods')}
          empty={{icon: 'lock', title: t('noMethods'), text: t('noMethodsText'), action: add}}
          columns={[
            {key: 'name', header: t('name'), cell: (m) => m.name},
            {key: 'code', header: t('code'), cell: (m) => <span class="mono">{m.code}</span>, priority: 3},
            {key: 'type', header: t('type'), cell: (m) => methodType(m.type), priority: 2, width: '180px'},
            {
              key: 'factor',
              header: t('factor'),
              cell: (m) => <span class="num">{t(m.factor === '1' ? 'factor1' : 'factor2')}</span>,
              priority: 3,
              width: '120px',
            },
            {key: 'status', header: t('status'), cell: (m) => <State status={m.status} />, width: '112px'},
            modifiedColumn({priority: 2}),
          ]}
          filters={[
            statusFilter(),
            {param: 'type', label: t('type'), options: types.map((value) => ({value, label: methodType(value)}))},
          ]}
        />
      </Frame>
      {open && <MethodPanel key={open} id={open} />}
      {param('create') && <Create close={() => void setQuery({create: null}, {replace: true})} />}
    </>
  );
}

const fields = (): FieldSpec<AuthMethod>[] => [
  {field: 'name', label: t('name')},
  {field: 'code', label: t('code'), help: t('codeHelp')},
  {field: 'type', label: t('type'), kind: 'select', options: types.map((value) => ({value, label: methodType(value)}))},
  {
    field: 'factor',
    label: t('factor'),
    kind: 'select',
    options: [
      {value: '1', label: t('factor1Long')},
      {value: '2', label: t('factor2Long')},
    ],
  },
];

function MethodPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getAuthMethod({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

function Loaded({answer, again}: {answer: Answer<AuthMethod>; again: () => void}) {
  const path = {id: answer.data.id};
  const draft = useDraft<AuthMethod>(answer, {
    scope,
    kind: 'auth-methods',
    load: () => full(getAuthMethod({path})),
    save: (patch, etag) =>
      full(updateAuthMethod({path, body: patch as AuthMethodPatchWritable, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
    again,
  });
  const m = draft.base.value,
    on = m.status === '1';
  const flip = (to: boolean) => call(to ? enableAuthMethod({path}) : disableAuthMethod({path}));
  const toggle = () =>
    void carryOut({
      send: () => flip(!on),
      back: () => flip(on),
      said: t(on ? 'disabledDone' : 'enabledDone', {name: m.name}),
      after: () => {
        changed('auth-methods');
        again();
      },
    });
  const headers = {'If-Match': `"${m.version}"`};
  const dry = () => call(deleteAuthMethod({path, headers, query: {dry_run: 'true'}}));
  return (
    <RecordPanel
      title={m.name}
      subtitle={
        <span class="row">
          <span class="mono clip">{m.code}</span>
          <State status={m.status} />
        </span>
      }
      actions={
        <RecordMenu
          record={m}
          file={m.code}
          scope={scope}
          items={[{label: t(on ? 'disable' : 'enable'), icon: on ? 'pause' : 'play', scope, onClick: toggle}]}
          removal={{
            title: t('deleteTitle', {name: m.name}),
            text: t('deleteMethodText'),
            typed: m.code,
            record: m,
            dry,
            refusal,
            counted: () => hrefQuery({tab: 'uses'}),
            send: () => call(deleteAuthMethod({path, headers})),
            said: t('deletedDone', {name: m.name}),
            kinds: ['auth-methods'],
          }}
        />
      }
      record={m}
      entity="auth_method"
      draft={draft}
      labels={{...labelsOf(fields()), connection_ids: t('connections'), policy: t('policy')}}
      overview={() => (
        <>
          <FormFields draft={draft} fields={fields()} />
          <ConnectionPicker
            type={draft.get('type') as Type}
            chosen={draft.get('connection_ids') as string[]}
            set={(ids) => draft.set('connection_ids', ids)}
            readOnly={draft.readOnly}
            error={draft.fault('connection_ids')}
            changed={!same(draft.get('connection_ids'), m.connection_ids)}
          />
          <JsonField
            label={t('policy')}
            help={t('policyHelp')}
            value={draft.get('policy')}
            set={(v) => draft.set('policy', v)}
            readOnly={draft.readOnly}
            error={draft.fault('policy')}
            changed={!same(draft.get('policy'), m.policy)}
          />
          <Facts facts={[...recordFacts(m)]} />
        </>
      )}
      tabs={[
        {name: 'uses', label: t('uses'), content: () => <Uses of={m.id} version={m.version} scope={scope} dry={dry} />},
      ]}
    />
  );
}

interface Draft {
  name: string;
  code: string;
  type: Type;
  factor: '1' | '2';
  connection_ids: string[];
  policy: unknown;
}

function Create({close}: {close: () => void}) {
  const body = useSignal<Draft>({name: '', code: '', type: 'password', factor: '1', connection_ids: [], policy: {}});
  const put = (members: Partial<Draft>) => {
    body.value = {...body.value, ...members};
  };
  const text = (error: ApiError | undefined, name: 'name' | 'code', label: string, help?: string) => (
    <Field label={label} help={help} error={faultOf(error, name)}>
      {(p) => (
        <input
          class={name === 'code' ? 'input mono' : 'input'}
          {...p}
          required
          autocomplete="off"
          spellcheck={false}
          value={body.value[name]}
          onInput={(e) => put({[name]: e.currentTarget.value})}
        />
      )}
    </Field>
  );
  const send = (key: string) =>
    call(createAuthMethod({body: body.value as AuthMethodInputWritable, headers: {'Idempotency-Key': key}}));
  return (
    <FormDialog
      wide
      title={t('newMethod')}
      yes={t('createRecord')}
      submit={send}
      close={close}
      done={async (made) => {
        changed('auth-methods');
        toast(t('createdDone', {name: made.name}));
        await setQuery({create: null, open: made.id}, {replace: true, force: true});
      }}
    >
      {(error) => (
        <>
          <div class="grid-2">
            {text(error, 'name', t('name'))}
            {text(error, 'code', t('code'), t('codeHelp'))}
            <SelectField
              label={t('type')}
              error={faultOf(error, 'type')}
              value={body.value.type}
              set={(v) => put({type: v as Type})}
            >
              {types.map((value) => (
                <option key={value} value={value}>
                  {methodType(value)}
                </option>
              ))}
            </SelectField>
            <SelectField
              label={t('factor')}
              error={faultOf(error, 'factor')}
              value={body.value.factor}
              set={(v) => put({factor: v as '1'})}
            >
              <option value="1">{t('factor1Long')}</option>
              <option value="2">{t('factor2Long')}</option>
            </SelectField>
          </div>
          <ConnectionPicker
            type={body.value.type}
            chosen={body.value.connection_ids}
            set={(connection_ids) => put({connection_ids})}
            error={faultOf(error, 'connection_ids')}
          />
          <JsonField
            label={t('policy')}
            help={t('policyHelp')}
            value={body.value.policy}
            set={(policy) => put({policy})}
            error={faultOf(error, 'policy')}
          />
        </>
      )}
    </FormDialog>
  );
}
