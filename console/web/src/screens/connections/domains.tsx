// The mail domains of a connection: whose login names lead to it.
import {useSignal} from '@preact/signals';
import {
  createConnectionDomain,
  deleteConnectionDomain,
  listConnectionDomains,
  updateConnectionDomain,
  verifyConnectionDomain,
  type ConnectionDomain,
} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago} from '../../lib/format';
import {changed, changes, useLoad} from '../../lib/load';
import {Button, Failed, Id, Late, Status} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {Entries, Entry} from '../../ui/entries';
import {Field, FormDialog, faultOf} from '../../ui/record';
import {attempt, carryOut} from '../../ui/undo';
import {scope} from './shared';
import {t} from './text';

const most = 100; // a connection has no more

const after = () => changed('connection domains');

export function Domains({id}: {id: string}) {
  const adding = useSignal(false);
  const {state, again} = useLoad(`domains of ${id} ${changes.value['connection domains'] ?? 0}`, (signal) =>
    call(listConnectionDomains({path: {id}, query: {page_size: most, page_sort: 'time_created'}, signal})),
  );
  const {value, error, busy} = state.value;
  if (error) return <Failed error={error} again={again} />;
  const all = value?.items ?? [];
  return (
    <>
      <p class="muted">{t('domainsText')}</p>
      <div class="row">
        <Button icon="plus" scope={scope} onClick={() => (adding.value = true)}>
          {t('domainAdd')}
        </Button>
      </div>
      <Late busy={busy && !value} lines={3}>
        {all.length > 0 && (
          <Entries>
            {all.map((d) => (
              <One key={d.id} d={d} />
            ))}
          </Entries>
        )}
      </Late>
      {adding.value && <Add id={id} close={() => (adding.value = false)} />}
    </>
  );
}

function One({d}: {d: ConnectionDomain}) {
  const path = {connection_id: d.connection_id, id: d.id};
  const on = d.enforce === '1',
    verified = d.status === 'verified',
    name = d.domain;
  const verify = () =>
    attempt(async () => {
      const now = await call(verifyConnectionDomain({path}));
      toast(t(now.status === 'verified' ? 'domainVerified' : 'domainNotYet', {name}));
      after();
    });
  const enforce = (to: boolean) => call(updateConnectionDomain({path, body: {enforce: to ? '1' : '0'}}));
  const flip = () =>
    carryOut({
      ask: on ? undefined : {title: t('enforceTitle', {name}), text: t('enforceText'), yes: t('enforce'), danger: true},
      send: () => enforce(!on),
      back: () => enforce(on),
      said: t(on ? 'enforceEnded' : 'enforced', {name}),
      after,
    });
  const send = () => call(deleteConnectionDomain({path}));
  const remove = () =>
    carryOut({
      ask: {
        title: t('deleteTitle', {name}),
        text: t('domainDeleteText'),
        yes: t('domainDelete'),
        danger: true,
        action: send,
      },
      send,
      said: t('deletedDone', {name}),
      after,
    });
  return (
    <>
      <Entry
        icon="mail"
        title={name}
        facts={[
          verified ? t('domainSince', {time: ago(d.time_verified ?? '')}) : t('domainPending'),
          on && t('domainEnforced'),
          d.failure !== '' && d.failure,
        ]}
      >
        <Status tone={verified ? 'good' : 'warn'}>{t(verified ? 'verified' : 'pending')}</Status>
        <Button small icon="refresh" scope={scope} onClick={() => void verify()}>
          {t('domainVerify')}
        </Button>
        <Button small scope={scope} onClick={() => void flip()}>
          {t(on ? 'enforceEnd' : 'enforce')}
        </Button>
        <Button
          small
          kind="ghost"
          icon="trash"
          scope={scope}
          label={t('domainDeleteOf', {name})}
          onClick={() => void remove()}
        />
      </Entry>
      {!verified && (
        <li>
          <div class="grow">
            <span class="faint">{t('domainRecord')}</span>
            <Id>{d.record_name}</Id>
            <Id>{d.record_value}</Id>
          </div>
        </li>
      )}
    </>
  );
}

function Add({id, close}: {id: string; close: () => void}) {
  const domain = useSignal('');
  return (
    <FormDialog
      title={t('domainAdd')}
      yes={t('domainAdd')}
      scope={scope}
      submit={(key) =>
        call(createConnectionDomain({path: {id}, body: {domain: domain.value}, headers: {'Idempotency-Key': key}}))
      }
      close={close}
      done={() => {
        after();
        close();
      }}
    >
      {(error) => (
        <Field label={t('domain')} help={t('domainHelp')} error={faultOf(error, 'domain')} wide>
          {(p) => (
            <input
              class="input mono"
              {...p}
              required
              autocomplete="off"
              spellcheck={false}
              value={domain.value}
              onInput={(e) => (domain.value = e.currentTarget.value)}
            />
          )}
        </Field>
      )}
    </FormDialog>
  );
}
