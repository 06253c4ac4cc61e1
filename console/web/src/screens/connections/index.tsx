// Connections to providers of identities, and the methods and templates that use them.
import '../../ui/kit';
import type {JSX} from 'preact';
import {useSignal} from '@preact/signals';
import {createConnection, listConnections, listProviders, type Connection, type Provider} from '@idplatform/sdk';
import {call} from '../../lib/api';

import {changed, useLoad} from '../../lib/load';
import {own} from '../../lib/own';
import type {Fields} from '../../lib/patch';
import {param, place, setQuery} from '../../lib/router';
import {Avatar, Button, Failed, Late} from '../../ui/basics';
import {Dialog, toast} from '../../ui/dialog';
import {List, type Query, modifiedColumn, statusFilter} from '../../ui/list';
import {FormDialog, faultOf, TextField} from '../../ui/record';
import {connectionName as nameOf, providerName} from '../../ui/providers';
import {SchemaForm, defaults, missing, type Schema} from '../../ui/schemaform';
import {Frame} from './frame';
import {Methods} from './methods';
import {ConnectionPanel} from './panel';
import {setting} from './settings';
import {State, picture, scope} from './shared';
import {Templates} from './templates';
import {t} from './text';

const kind = (type: string) => t.word('', type);

// The screen has three parts, each with a list of its own; the first segment of the path says which.
const parts: Record<string, () => JSX.Element> = {methods: Methods, templates: Templates};

export default function Screen() {
  const Part = own(parts, place.value.rest[0] ?? '') ?? Connections;
  return <Part />;
}

// load gets all of them, as the operation has no pages.
async function load(query: Query, _: string | undefined, signal: AbortSignal) {
  const {status, type} = query.filters;
  const items = await call(
    listConnections({
      signal,
      query: {
        keyword: query.q || undefined,
        status: (status || undefined) as Connection['status'] | undefined,
        type: (type || undefined) as Connection['type'] | undefined,
      },
    }),
  );
  return {items, total: items.length};
}

function Connections() {
  const total = useSignal<number | undefined>(undefined);
  const open = param('open'),
    create = param('create');
  const add = (
    <Button kind="primary" icon="plus" scope={scope} onClick={() => void setQuery({create: 'choose'})}>
      {t('create')}
    </Button>
  );
  const options = (names: ('social' | 'database' | 'mfa' | 'enterprise')[]) =>
    names.map((value) => ({value, label: t(value)}));
  return (
    <>
      <Frame part="connections" total={total.value} actions={add}>
        <List<Connection>
          header={false}
          name="connections"
          title={t('title')}
          kind="connections"
          rowId={(c) => c.id}
          rowName={nameOf}
          load={async (query, token, signal) => {
            const page = await load(query, token, signal);
            total.value = page.total;
            return page;
          }}
          search={t('search')}
          empty={{icon: 'plug', title: t('emptyTitle'), text: t('emptyText'), action: add}}
          columns={[
            {
              key: 'name',
              header: t('name'),
              cell: (c) => (
                <span class="row">
                  <Avatar icon="plug" name={nameOf(c)} src={picture(c.logo)} />
                  <span class="clip">{nameOf(c)}</span>
                </span>
              ),
            },
            {key: 'provider', header: t('provider'), cell: (c) => providerName(c), priority: 2, width: '180px'},
            {key: 'type', header: t('type'), cell: (c) => kind(c.type), priority: 3, width: '140px'},
            {key: 'status', header: t('status'), cell: (c) => <State status={c.status} />, width: '112px'},
            modifiedColumn({priority: 2}),
          ]}
          filters={[
            statusFilter(),
            {param: 'type', label: t('type'), options: options(['social', 'enterprise', 'database', 'mfa'])},
          ]}
        />
      </Frame>
      {open && <ConnectionPanel key={open} id={open} />}
      {create && <Create code={create} />}
    </>
  );
}

function Create({code}: {code: string}) {
  const {state, again} = useLoad('providers', (signal) => call(listProviders({signal})));
  const {value, error, busy} = state.value;
  const close = () => void setQuery({create: null}, {replace: true});
  const provider = value?.find((p) => p.provider_code === code);
  if (provider) return <Form key={code} provider={provider} close={close} />;
  return (
    <Dialog wide class="tall" title={t('chooseTitle')} onClose={close}>
      {error ? (
        <Failed error={error} again={again} />
      ) : (
        <Late busy={busy && !value} lines={8}>
          <ul class="gallery">
            {value?.map((p) => (
              <li key={p.provider_code}>
                <button type="button" class="tile" onClick={() => void setQuery({create: p.provider_code})}>
                  <Avatar large icon="plug" name={providerName(p)} src={picture(p.logo)} />
                  <span class="grow">
                    <strong>{providerName(p)}</strong>
                    <span class="faint">{kind(p.type)}</span>
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </Late>
      )}
    </Dialog>
  );
}

function Form({provider, close}: {provider: Provider; close: () => void}) {
  const schema = provider.config_schema as Schema;
  const fields = useSignal<Fields>(defaults(schema));
  const name = useSignal(providerName(provider));
  const send = (key: string) =>
    call(
      createConnection({
        headers: {'Idempotency-Key': key},
        body: {
          provider_code: provider.provider_code,
          display_name: name.value || undefined,
          config_fields: fields.value,
          status: '0', // until its test has passed
        },
      }),
    );
  return (
    <FormDialog
      wide
      title={t('createFrom', {name: providerName(provider)})}
      yes={t('createDo')}
      disabled={missing(schema, fields.value).length > 0}
      submit={send}
      close={close}
      done={async (made) => {
        changed('connections');
        toast(t('savedDisabled', {name: nameOf(made)}));
        await setQuery({create: null, open: made.id, tab: 'test'}, {replace: true, force: true});
      }}
      start={
        <Button
          class="start"
          kind="ghost"
          icon="left"
          onClick={() => void setQuery({create: 'choose'}, {replace: true})}
        >
          {t('providers')}
        </Button>
      }
    >
      {(error) => (
        <>
          <TextField
            label={t('connectionName')}
            error={faultOf(error, 'display_name')}
            value={name.value}
            set={(v) => {
              name.value = v;
            }}
          />
          <SchemaForm
            schema={schema}
            value={fields.value}
            set={(v) => {
              fields.value = v;
            }}
            error={error}
            at="config_fields"
            words={setting}
          />
        </>
      )}
    </FormDialog>
  );
}
