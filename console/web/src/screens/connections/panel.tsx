// One connection: settings, the test step by step, audit, JSON.
import {useSignal} from '@preact/signals';
import {
  deleteConnection,
  disableConnection,
  enableConnection,
  getConnection,
  listProviders,
  replaceConnection,
  testConnection,
  type Connection,
  type Provider,
  type Result,
} from '@idplatform/sdk';
import {asProblem, call, full, type Answer, type ApiError} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {same, type Fields} from '../../lib/patch';
import {hrefQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Avatar, Button, Failed, Id, Status} from '../../ui/basics';
import {Actor} from '../../ui/origin';
import {Facts, FormFields, PanelLoad, RecordMenu, RecordPanel, useDraft} from '../../ui/record';
import {connectionName as nameOf, providerName} from '../../ui/providers';
import {SchemaForm, type Schema} from '../../ui/schemaform';
import {carryOut} from '../../ui/undo';
import {Domains} from './domains';
import {partHref} from './frame';
import {allMethods} from './methods';
import {setting} from './settings';
import {State, picture, scope} from './shared';
import {t} from './text';
import {Uses, refusal} from './uses';

const nativeDatabase = 'idp_native_db'; // every tenant has one, which stays

interface Both {
  answer: Answer<Connection>;
  provider: Provider | undefined;
}

async function load(id: string, signal: AbortSignal): Promise<Both> {
  const [answer, providers] = await Promise.all([
    full(getConnection({path: {id}, signal})),
    call(listProviders({signal})),
  ]);
  const provider = providers.find((p) => p.provider_code === answer.data.provider_code);
  return {answer, provider};
}

export function ConnectionPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => load(id, signal)}>
      {(both, again) => <Loaded {...both} again={again} />}
    </PanelLoad>
  );
}

function put(c: Connection, etag: string) {
  const {provider_code, display_name, config_fields} = c;
  return call(
    replaceConnection({
      path: {id: c.id},
      body: {provider_code, display_name, config_fields},
      headers: {'If-Match': etag},
    }),
  );
}

function Loaded({answer, provider, again}: Both & {again: () => void}) {
  const id = answer.data.id;
  const schema = (provider?.config_schema ?? {}) as Schema;
  const draft = useDraft<Connection>(answer, {
    scope,
    kind: 'connections',
    load: () => full(getConnection({path: {id}})),
    save: async (_, etag, whole) => {
      await put(whole, etag);
      return full(getConnection({path: {id}}));
    },
    saved: (now) => t('savedDone', {name: nameOf(now)}),
    again,
  });
  const c = draft.base.value,
    on = c.status === '1',
    name = nameOf(c);
  const flip = (to: boolean) => (to ? call(enableConnection({path: {id}})) : call(disableConnection({path: {id}})));
  const toggle = () =>
    void carryOut({
      send: () => flip(!on),
      back: () => flip(on),
      said: t(on ? 'disabledDone' : 'enabledDone', {name}),
      after: () => {
        changed('connections');
        again();
      },
    });
  const headers = {'If-Match': `"${c.version}"`};
  const dry = () => call(deleteConnection({path: {id}, headers, query: {dry_run: 'true'}}));
  const secrets = asked(schema, c.config_fields, draft.get('config_fields') as Fields);
  return (
    <RecordPanel
      title={name}
      lead={<Avatar large icon="plug" name={name} src={picture(c.logo)} />}
      subtitle={
        <span class="row">
          <span class="mono clip">{c.provider_code}</span>
          <State status={c.status} />
        </span>
      }
      actions={
        <RecordMenu
          record={c}
          file={name}
          scope={scope}
          cannotRemove={c.provider_code === nativeDatabase}
          items={[{label: t(on ? 'disable' : 'enable'), icon: on ? 'pause' : 'play', scope, onClick: toggle}]}
          removal={{
            title: t('deleteTitle', {name}),
            text: t('deleteText'),
            typed: name,
            record: c,
            dry,
            refusal,
            counted: () => hrefQuery({tab: 'uses'}),
            send: () => call(deleteConnection({path: {id}, headers})),
            said: t('deletedDone', {name}),
            kinds: ['connections'],
          }}
        />
      }
      record={c}
      entity="connection"
      draft={draft}
      labels={{display_name: t('connectionName'), config_fields: t('settings')}}
      overview={() => (
        <>
          {provider?.sign_in ? (
            <p class="note">{t(provider.sign_in === 'password' ? 'asksPassword' : 'signsIn')}</p>
          ) : (
            (c.type === 'social' || c.type === 'enterprise') && <p class="note warn">{t('signsNobodyIn')}</p>
          )}
          <FormFields
            draft={draft}
            fields={[{field: 'display_name', label: t('connectionName'), placeholder: providerName(c), wide: true}]}
          />
          {Object.keys(schema.properties ?? {}).length > 0 && (
            <section class="section">
              <h3>{t('settings')}</h3>
              {secrets.length > 0 && (
                <p class="note warn" role="status">
                  {t('secretAgain', {names: secrets.join(', ')})}
                </p>
              )}
              <SchemaForm
                schema={schema}
                value={draft.get('config_fields') as Fields}
                error={draft.error.value}
                at="config_fields"
                readOnly={!may(scope)}
                set={(v) => draft.set('config_fields', v)}
                words={setting}
              />
            </section>
          )}
          <Facts facts={facts(c, provider)} />
        </>
      )}
      tabs={[
        {
          name: 'test',
          label: t('test'),
          content: () => <Test key={c.version} id={id} on={on} toggle={toggle} unsaved={draft.count.value > 0} />,
        },
        ...(provider?.sign_in ? [{name: 'domains', label: t('domains'), content: () => <Domains id={id} />}] : []),
        {
          name: 'uses',
          label: t('uses'),
          content: () => <Uses of={id} version={c.version} scope={scope} dry={dry} more={<UsedByMethods id={id} />} />,
        },
      ]}
    />
  );
}

/** asked are the secrets that have to be entered again, since where they are sent to has changed. */
function asked(schema: Schema, base: Fields, now: Fields): string[] {
  return Object.entries(schema.properties ?? {})
    .filter(([name, s]) => now[name] === '******' && routeOf(s).some((member) => !same(base[member], now[member])))
    .map(([name, s]) => setting(s.title ?? name));
}

const routeOf = (s: Schema): string[] => (s as {'x-route'?: string[]})['x-route'] ?? [];

function facts(c: Connection, provider: Provider | undefined): Parameters<typeof Facts>[0]['facts'] {
  const docs = provider?.documentation;
  const callback = provider?.callback_url?.replace('{connection_id}', c.id);
  const logout = provider?.logout_url?.replace('{connection_id}', c.id);
  return [
    [t('provider'), providerName(c)],
    [
      t('docs'),
      docs && (
        <a href={docs} target="_blank" rel="noopener noreferrer">
          {new URL(docs).host}
        </a>
      ),
    ],
    [t('callbackURL'), callback && <Id>{callback}</Id>],
    [t('logoutURL'), logout && <Id>{logout}</Id>],
    [t('id'), <Id>{c.id}</Id>],
    [t('createdBy'), c.developer_id && <Actor actor={c.developer_id} />],
    [t('created'), dateTime(c.time_created)],
    [t('modified'), <span title={dateTime(c.time_modified)}>{ago(c.time_modified)}</span>],
    [t('version'), <span class="num">{c.version}</span>],
  ];
}

/** UsedByMethods names the methods that use a connection. */
function UsedByMethods({id}: {id: string}) {
  const {value} = useLoad(`methods of ${id}`, (signal) => allMethods({}, signal)).state.value;
  const using = (value ?? []).filter((m) => m.connection_ids.includes(id));
  if (!using.length) return null;
  return (
    <section class="section">
      <h3>{t('methods')}</h3>
      <ul class="cards">
        {using.map((m) => (
          <li key={m.id} class="card row">
            <a class="clip grow" href={partHref('methods', {open: m.id})}>
              {m.name}
            </a>
            <State status={m.status} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Test({id, on, toggle, unsaved}: {id: string; on: boolean; toggle: () => void; unsaved: boolean}) {
  const result = useSignal<Result | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const busy = useSignal(false);
  const run = async () => {
    busy.value = true;
    error.value = undefined;
    try {
      result.value = await call(testConnection({path: {id}}));
    } catch (e) {
      error.value = asProblem(e);
    } finally {
      busy.value = false;
    }
  };
  const r = result.value;
  return (
    <>
      <p class="muted">{t('testText')}</p>
      {unsaved && <p class="note warn">{t('testUnsaved')}</p>}
      <div class="row">
        <Button
          kind={r?.ok ? undefined : 'primary'}
          icon="play"
          scope={scope}
          busy={busy.value}
          onClick={() => void run()}
        >
          {t('test')}
        </Button>
        {!on && (
          <Button kind={r?.ok ? 'primary' : undefined} scope={scope} onClick={toggle}>
            {t('enable')}
          </Button>
        )}
        {r && <Status tone={r.ok ? 'good' : 'bad'}>{t(r.ok ? 'passed' : 'failed')}</Status>}
      </div>
      {error.value && <Failed error={error.value} again={() => void run()} />}
      {r && (
        <ul class="cards">
          {r.steps.map((s, i) => (
            <li key={i} class="card">
              <div class="row spread">
                <Status tone={s.ok ? 'good' : 'bad'}>{t.word('step_', s.name)}</Status>
                <span class="faint num">{t('ms', {n: s.duration_ms})}</span>
              </div>
              {s.message && (
                <p class="muted" lang="en">
                  {s.message}
                </p>
              )}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
