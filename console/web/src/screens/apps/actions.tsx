// What can be done with an application: enable, disable and delete, each with what goes along.
import type {ComponentChildren} from 'preact';
import {useSignal} from '@preact/signals';
import {
  deleteApplication,
  disableApplication,
  enableApplication,
  listAccounts,
  listProtocols,
  type Application,
} from '@idplatform/sdk';
import {asProblem, call, type ApiError} from '../../lib/api';
import {number} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {setQuery} from '../../lib/router';
import {Button, Failed, Late} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {Facts, FormDialog, RecordMenu, download, TextField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {carryOut, undone} from '../../ui/undo';
import {t} from './text';

const scope = 'applications:write';

export function Actions({app, again}: {app: Application; again: () => void}) {
  const dialog = useSignal<'' | 'disable' | 'delete'>('');
  const path = {id: app.id};
  const after = () => {
    changed('apps');
    again();
  };
  const close = () => {
    dialog.value = '';
  };
  const enable = () =>
    void carryOut({
      send: () => call(enableApplication({path})),
      back: () => call(disableApplication({path})),
      said: t('enabledDone', {name: app.name}),
      after,
    });
  return (
    <>
      <RecordMenu
        record={app}
        file={app.name}
        scope={scope}
        items={[
          app.status === '1'
            ? {
                label: t('disableMore'),
                icon: 'pause',
                scope,
                onClick: () => {
                  dialog.value = 'disable';
                },
              }
            : {label: t('enable'), icon: 'play', scope, onClick: enable},
        ]}
        removal={() => {
          dialog.value = 'delete';
        }}
      />
      {dialog.value === 'disable' && <Disable app={app} close={close} after={after} />}
      {dialog.value === 'delete' && <Delete app={app} close={close} />}
    </>
  );
}

interface Effects {
  accounts: number;
  protocols: number;
  refused?: ApiError;
}

// effects counts what hangs on an application, and tries the change dry.
async function effects(app: Application, dry: () => Promise<unknown>, signal: AbortSignal): Promise<Effects> {
  const [accounts, protocols, refused] = await Promise.all([
    call(listAccounts({path: {id: app.id}, query: {page_size: 1}, signal})),
    call(listProtocols({path: {id: app.id}, query: {status: '1'}, signal})),
    dry().then(() => undefined, asProblem),
  ]);
  return {accounts: accounts.total ?? accounts.items?.length ?? 0, protocols: protocols.length, refused};
}

function Effect({
  state,
  app,
  protocolsLabel,
}: {
  state: {value?: Effects; error?: ApiError; busy: boolean};
  app: Application;
  protocolsLabel: string;
}) {
  const {value, error, busy} = state;
  if (error) return <Failed error={error} />;
  const rows: [string, ComponentChildren][] = value
    ? [
        [t('accounts'), number(value.accounts)],
        [protocolsLabel, number(value.protocols)],
        [t('secrets'), number(app.secrets.length)],
        [t('sources'), number(app.idps.length)],
      ]
    : [];
  return (
    <Late busy={busy && !value} lines={3}>
      {value?.refused && <Failed error={value.refused} />}
      {value?.refused?.problem.errors?.map((e) => (
        <p key={e.location} class="muted" lang="en">
          {e.location}: {e.message} {e.count ?? ''}
        </p>
      ))}
      {value && (
        <section class="section">
          <h3>{t('effects')}</h3>
          <Facts facts={rows} />
        </section>
      )}
    </Late>
  );
}

function Disable({app, close, after}: {app: Application; close: () => void; after: () => void}) {
  const path = {id: app.id};
  const {state} = useLoad(`disable ${app.id}`, (signal) =>
    effects(app, () => call(disableApplication({path, query: {dry_run: 'true'}, signal})), signal),
  );
  return (
    <FormDialog
      title={t('disableTitle', {name: app.name})}
      yes={t('disable')}
      disabled={!state.value.value || !!state.value.value.refused}
      close={close}
      submit={() => call(disableApplication({path}))}
      done={() => {
        toast(t('disabledDone', {name: app.name}), () =>
          undone(() => call(enableApplication({path})), ui('stayEnded')).then(after),
        );
        close();
        after();
      }}
    >
      {() => (
        <>
          <p class="muted">{t('disableText')}</p>
          <Effect state={state.value} app={app} protocolsLabel={t('protocolsOn')} />
        </>
      )}
    </FormDialog>
  );
}

function Delete({app, close}: {app: Application; close: () => void}) {
  const path = {id: app.id};
  const {state} = useLoad(`delete ${app.id}`, (signal) =>
    effects(app, () => call(deleteApplication({path, query: {dry_run: 'true'}, signal})), signal),
  );
  const typed = useSignal('');
  return (
    <FormDialog
      danger
      title={t('deleteTitle', {name: app.name})}
      yes={ui('delete')}
      disabled={typed.value.trim() !== app.name || !state.value.value || !!state.value.value.refused}
      close={close}
      submit={() => call(deleteApplication({path, headers: {'If-Match': `"${app.version}"`}}))}
      done={async () => {
        await setQuery({open: null, tab: null}, {force: true});
        toast(t('deletedDone', {name: app.name}));
        changed('apps');
      }}
      start={
        <Button class="start" icon="download" onClick={() => download(app.name, app)}>
          {ui('downloadRecord')}
        </Button>
      }
    >
      {() => (
        <>
          <p class="muted">{t('deleteText')}</p>
          <Effect state={state.value} app={app} protocolsLabel={t('protocolsOn')} />
          <TextField
            label={ui('typeName', {name: app.name})}
            value={typed.value}
            set={(v) => {
              typed.value = v;
            }}
          />
        </>
      )}
    </FormDialog>
  );
}
