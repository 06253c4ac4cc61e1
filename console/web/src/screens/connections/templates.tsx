// Authentication templates: what a login consists of.
import {useSignal} from '@preact/signals';
import {
  createAuthTemplate,
  deleteAuthTemplate,
  getAuthTemplate,
  listAuthTemplates,
  setDefaultAuthTemplate,
  updateAuthTemplate,
  type AuthStep,
  type AuthTemplate,
  type AuthTemplatePatchWritable,
} from '@idplatform/sdk';
import {call, full, type Answer, type ApiError} from '../../lib/api';

import {changed} from '../../lib/load';
import {allPages} from '../../lib/pages';
import {param, setQuery} from '../../lib/router';
import {Button, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {List, type Query, modifiedColumn} from '../../ui/list';
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
  recordFacts,
} from '../../ui/record';
import {attempt, carryOut} from '../../ui/undo';
import {Frame} from './frame';
import {scope} from './shared';
import {StepsEditor, stepsInWords, useMethods} from './steps';
import {t} from './text';

function allTemplates(): Promise<AuthTemplate[]> {
  return allPages((page_token) => call(listAuthTemplates({query: {page_size: 200, page_token, count: 'false'}})));
}

export function Templates() {
  const total = useSignal<number | undefined>(undefined);
  const methods = useMethods().state.value.value ?? [];
  const open = param('open');
  const load = async (query: Query, pageToken: string | undefined, signal: AbortSignal) => {
    const page = await call(
      listAuthTemplates({
        signal,
        query: {
          keyword: query.q || undefined,
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
      {t('newTemplate')}
    </Button>
  );
  return (
    <>
      <Frame part="templates" total={total.value} actions={add}>
        <List<AuthTemplate>
          name="auth-templates"
          title={t('templates')}
          header={false}
          kind="auth-templates"
          rowId={(x) => x.id}
          rowName={(x) => x.name}
          load={load}
          search={t('searchMethods')}
          empty={{icon: 'lock', title: t('noTemplates'), text: t('noTemplatesText'), action: add}}
          columns={[
            {
              key: 'name',
              header: t('name'),
              cell: (x) => (
                <span class="row">
                  <span class="clip">{x.name}</span>
                  {x.is_default === '1' && <Tag accent>{t('default')}</Tag>}
                </span>
              ),
              width: '34%',
            },
            {
              key: 'steps',
              header: t('steps'),
              cell: (x) => <span class="muted">{stepsInWords(x.steps, methods)}</span>,
              priority: 2,
            },
            {key: 'code', header: t('code'), cell: (x) => <span class="mono">{x.code}</span>, priority: 3},
            modifiedColumn({priority: 3}),
          ]}
        />
      </Frame>
      {open && <TemplatePanel key={open} id={open} />}
      {param('create') && <Create close={() => void setQuery({create: null}, {replace: true})} />}
    </>
  );
}

const fields = (): FieldSpec<AuthTemplate>[] => [
  {field: 'name', label: t('name')},
  {field: 'code', label: t('code'), help: t('codeHelp')},
];

function TemplatePanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getAuthTemplate({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

function Loaded({answer, again}: {answer: Answer<AuthTemplate>; again: () => void}) {
  const path = {id: answer.data.id};
  const draft = useDraft<AuthTemplate>(answer, {
    scope,
    kind: 'auth-templates',
    load: () => full(getAuthTemplate({path})),
    save: (patch, etag) =>
      full(updateAuthTemplate({path, body: patch as AuthTemplatePatchWritable, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
    again,
  });
  const methods = useMethods().state.value.value ?? [];
  const x = draft.base.value,
    isDefault = x.is_default === '1';
  const after = () => {
    changed('auth-templates');
    again();
  };
  return (
    <RecordPanel
      title={x.name}
      subtitle={
        <span class="row">
          <span class="mono clip">{x.code}</span>
          {isDefault && <Tag accent>{t('default')}</Tag>}
        </span>
      }
      actions={
        <RecordMenu
          record={x}
          file={x.code}
          scope={scope}
          cannotRemove={isDefault}
          items={[
            {
              label: t('makeDefault'),
              icon: 'check',
              scope,
              disabled: isDefault,
              onClick: () => void makeDefault(x, after),
            },
          ]}
          removal={{
            title: t('deleteTitle', {name: x.name}),
            text: t('deleteTemplateText'),
            typed: x.code,
            record: x,
            send: () => call(deleteAuthTemplate({path, headers: {'If-Match': `"${x.version}"`}})),
            said: t('deletedDone', {name: x.name}),
            kinds: ['auth-templates'],
          }}
        />
      }
      record={x}
      entity="auth_template"
      draft={draft}
      labels={{...labelsOf(fields()), steps: t('steps')}}
      overview={() => (
        <>
          <p>{stepsInWords(draft.get('steps') as AuthStep[], methods)}</p>
          {isDefault && <p class="muted">{t('defaultText')}</p>}
          <FormFields draft={draft} fields={fields()} />
          <StepsEditor
            steps={draft.get('steps') as AuthStep[]}
            set={(steps) => draft.set('steps', steps)}
            error={draft.error.value}
            readOnly={draft.readOnly}
          />
          <Facts facts={[...recordFacts(x)]} />
        </>
      )}
    />
  );
}

/** makeDefault has an inverse if another template was the default before. */
async function makeDefault(x: AuthTemplate, after: () => void): Promise<void> {
  let before: AuthTemplate | undefined;
  const known = await attempt(async () => {
    before = (await allTemplates()).find((o) => o.is_default === '1');
  });
  if (!known) return;
  const id = before?.id;
  await carryOut({
    send: () => call(setDefaultAuthTemplate({path: {id: x.id}, headers: {'If-Match': `"${x.version}"`}})),
    back: id === undefined ? undefined : () => call(setDefaultAuthTemplate({path: {id}})),
    said: t('defaultDone', {name: x.name}),
    after,
  });
}

interface Draft {
  name: string;
  code: string;
  steps: AuthStep[];
}

function Create({close}: {close: () => void}) {
  const body = useSignal<Draft>({name: '', code: '', steps: [{methods: [], required: true}]});
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
  return (
    <FormDialog
      wide
      title={t('newTemplate')}
      yes={t('createRecord')}
      submit={(key) => call(createAuthTemplate({body: body.value, headers: {'Idempotency-Key': key}}))}
      close={close}
      done={async (made) => {
        changed('auth-templates');
        toast(t('createdDone', {name: made.name}));
        await setQuery({create: null, open: made.id}, {replace: true, force: true});
      }}
    >
      {(error) => (
        <>
          <div class="grid-2">
            {text(error, 'name', t('name'))}
            {text(error, 'code', t('code'), t('codeHelp'))}
          </div>
          <StepsEditor steps={body.value.steps} set={(steps) => put({steps})} error={error} />
        </>
      )}
    </FormDialog>
  );
}
