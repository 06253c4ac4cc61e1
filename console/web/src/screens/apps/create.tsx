// A new application: a template of the gallery, or settings of one's own; then its secret, once.
import {useSignal} from '@preact/signals';
import {
  createApplication,
  listApplicationTemplates,
  type ApplicationInputWritable,
  type NewApplication,
  type Template,
} from '@idplatform/sdk';
import {call, type ApiError} from '../../lib/api';
import {changed, useLoad} from '../../lib/load';
import type {Fields} from '../../lib/patch';
import {setQuery} from '../../lib/router';
import {Avatar, Blank, Button, Failed, Late, Tag} from '../../ui/basics';
import {Dialog, toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {FormDialog, faultOf, TextField, SelectField} from '../../ui/record';
import {SchemaForm, defaults, missing, type Schema} from '../../ui/schemaform';
import {logo} from './index';
import {parameter} from './params';
import {AppSecret} from './secrets';
import {categories, categoryName, protocolName, protocols, t} from './text';

const own = 'own'; // an application without a template

/** Create follows the URL: create=gallery, create=own, create=<template>. */
export function Create({template}: {template: string}) {
  const {state, again} = useLoad('templates', (signal) => call(listApplicationTemplates({query: {name: ''}, signal})));
  const made = useSignal<NewApplication | undefined>(undefined);
  const close = () => void setQuery({create: null}, {replace: true});
  const {value, error, busy} = state.value;
  if (made.value) {
    const app = made.value;
    const done = () => void setQuery({create: null, open: app.id, tab: null}, {replace: true, force: true});
    return <AppSecret app={app} secret={app.client_secret ?? ''} close={done} />;
  }
  if (template === 'gallery' || (template !== own && !value)) {
    return (
      <Dialog wide class="tall" title={t('galleryTitle')} onClose={close}>
        {error ? (
          <Failed error={error} again={again} />
        ) : (
          <Late busy={busy && !value} lines={8}>
            {value && <Gallery templates={value} />}
          </Late>
        )}
      </Dialog>
    );
  }
  const chosen = value?.find((x) => x.template_id === template);
  return (
    <Form
      key={template}
      template={chosen}
      close={close}
      done={(app) => {
        changed('apps');
        toast(t('createdDone', {name: app.name}));
        if (app.client_secret) made.value = app;
        else void setQuery({create: null, open: app.id, tab: null}, {replace: true, force: true});
      }}
    />
  );
}

function Gallery({templates}: {templates: Template[]}) {
  const q = useSignal('');
  const words = q.value.trim().toLowerCase();
  const found = templates
    .filter((x) => `${x.name} ${x.protocol_type}`.toLowerCase().includes(words))
    .sort((a, b) => a.name.localeCompare(b.name));
  const choose = (id: string) => void setQuery({create: id});
  return (
    <div class="stack">
      <label class="search">
        <span class="visually-hidden">{t('gallerySearch')}</span>
        <Icon name="search" />
        <input
          class="input"
          type="search"
          placeholder={t('gallerySearch')}
          value={q.value}
          onInput={(e) => {
            q.value = e.currentTarget.value;
          }}
        />
      </label>
      <ul class="gallery">
        {!words && (
          <li>
            <button type="button" class="tile own" onClick={() => choose(own)}>
              <span class="avatar large">
                <Icon name="plus" size={18} />
              </span>
              <span class="grow">
                <strong>{t('ownApp')}</strong>
                <span class="faint clip">{t('ownAppText')}</span>
              </span>
            </button>
          </li>
        )}
        {found.map((x) => (
          <li key={x.template_id}>
            <button type="button" class="tile" onClick={() => choose(x.template_id)}>
              <Avatar large icon="app" name={x.name} src={logo(x.logo)} />
              <span class="grow">
                <strong>{x.name}</strong>
                <span class="faint">{protocolName(x.protocol_type)}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {found.length === 0 && (
        <Blank
          icon="search"
          title={t('galleryNone')}
          action={<Button onClick={() => choose(own)}>{t('ownApp')}</Button>}
        >
          {t('galleryNoneText')}
        </Blank>
      )}
    </div>
  );
}

type Body = Partial<ApplicationInputWritable>;

function bodyOf(template: Template | undefined, body: Body, params: Fields): ApplicationInputWritable {
  const filled = Object.fromEntries(Object.entries(body).filter(([, v]) => v !== '')) as Body;
  if (!template) return {name: '', ...filled};
  return {
    name: '',
    ...filled,
    template_id: template.template_id,
    type: '2',
    template_params: {version: template.version, params},
  };
}

function Form({template, close, done}: {template?: Template; close: () => void; done: (app: NewApplication) => void}) {
  const schema = (template?.params_schema ?? {}) as Schema;
  const body = useSignal<Body>(template ? {name: template.name} : {protocol_type: 'oidc', category: '1'});
  const params = useSignal<Fields>(defaults(schema));
  const send = (key: string) =>
    call(createApplication({body: bodyOf(template, body.value, params.value), headers: {'Idempotency-Key': key}}));
  return (
    <FormDialog
      wide
      title={template ? t('createFrom', {name: template.name}) : t('createTitle')}
      yes={t('createDo')}
      disabled={missing(schema, params.value).length > 0 || !body.value.name?.trim()}
      submit={send}
      done={done}
      close={close}
      start={
        <Button
          class="start"
          icon="left"
          kind="ghost"
          onClick={() => void setQuery({create: 'gallery'}, {replace: true})}
        >
          {t('toGallery')}
        </Button>
      }
    >
      {(error) => (
        <>
          {template && <TemplateHead template={template} />}
          <Text body={body} error={error} />
          {template ? (
            Object.keys(schema.properties ?? {}).length > 0 && (
              <section class="section">
                <h3>{t('paramsTitle', {name: template.name})}</h3>
                <SchemaForm
                  schema={schema}
                  value={params.value}
                  set={(v) => {
                    params.value = v;
                  }}
                  error={error}
                  at="template_params.params"
                  words={parameter}
                />
              </section>
            )
          ) : (
            <OwnFields body={body} error={error} />
          )}
        </>
      )}
    </FormDialog>
  );
}

function TemplateHead({template}: {template: Template}) {
  return (
    <div class="row wrap">
      <Avatar icon="app" name={template.name} src={logo(template.logo)} />
      <span class="grow muted" lang="en">
        {String(template.defaults.descr ?? '')}
      </span>
      <Tag accent>{protocolName(template.protocol_type)}</Tag>
      <Tag>{categoryName(template.category)}</Tag>
    </div>
  );
}

interface Part {
  body: {value: Body};
  error: ApiError | undefined;
}

function Text({body, error}: Part) {
  const set = (v: Body) => {
    body.value = {...body.value, ...v};
  };
  return (
    <div class="grid-2">
      <TextField
        label={`${t('name')} *`}
        error={faultOf(error, 'name')}
        value={body.value.name ?? ''}
        set={(v) => set({name: v})}
      />
      <TextField
        label={t('descr')}
        error={faultOf(error, 'descr')}
        value={body.value.descr ?? ''}
        set={(v) => set({descr: v})}
      />
    </div>
  );
}

function OwnFields({body, error}: Part) {
  const b = body.value;
  const set = (v: Body) => {
    body.value = {...body.value, ...v};
  };
  const url = (name: 'login_url' | 'redirect_url' | 'logout_url', label: string, help?: string) => (
    <TextField
      label={label}
      help={help}
      error={faultOf(error, name)}
      type="url"
      placeholder="https://"
      value={b[name] ?? ''}
      set={(v) => set({[name]: v.trim()})}
    />
  );
  const prop = (name: 'acs_url' | 'sp_entity', label: string) => (
    <TextField
      label={label}
      error={faultOf(error, `protocol_prop.${name}`)}
      value={b.protocol_prop?.[name] ?? ''}
      set={(v) => set({protocol_prop: {...b.protocol_prop, [name]: v.trim() || undefined}})}
    />
  );
  return (
    <div class="grid-2">
      <SelectField
        label={t('protocol')}
        help={t('protocolHelp')}
        error={faultOf(error, 'protocol_type')}
        value={b.protocol_type}
        set={(v) => set({protocol_type: v as 'oidc', protocol_prop: undefined})}
      >
        {protocols.map((x) => (
          <option key={x} value={x}>
            {protocolName(x)}
          </option>
        ))}
      </SelectField>
      <SelectField
        label={t('category')}
        error={faultOf(error, 'category')}
        value={b.category}
        set={(v) => set({category: v as '1'})}
      >
        {Object.entries(categories()).map(([v, label]) => (
          <option key={v} value={v}>
            {label}
          </option>
        ))}
      </SelectField>
      {b.protocol_type === 'saml' ? (
        <>
          {prop('acs_url', t('acsUrl'))}
          {prop('sp_entity', t('spEntity'))}
        </>
      ) : (
        url('redirect_url', t('redirectUrl'), t('redirectHelp'))
      )}
      {url('login_url', t('loginUrl'), t('loginHelp'))}
      {url('logout_url', t('logoutUrl'))}
    </div>
  );
}
