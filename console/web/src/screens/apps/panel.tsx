// One application: overview and form, protocols, secrets, sub-accounts, sources, audit, JSON.
import type {ComponentChildren} from 'preact';
import {getApplication, updateApplication, type Application} from '@idplatform/sdk';
import {full, type Answer} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {Avatar, Id} from '../../ui/basics';
import {Facts, FormFields, PanelLoad, RecordPanel, labelsOf, useDraft, type FieldSpec} from '../../ui/record';
import {AccountsTab} from './accounts';
import {Actions} from './actions';
import {AppStatus, logo} from './index';
import {LogoSection} from './logo';
import {ProtocolsTab} from './protocols';
import {SecretsTab} from './secrets';
import {SignOut} from './signout';
import {SourcesTab} from './sources';
import {categories, protocolName, t} from './text';

export function AppPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getApplication({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

type Spec = FieldSpec<Application>;

const general = (): Spec[] => [
  {field: 'name', label: t('name')},
  {
    field: 'category',
    label: t('category'),
    kind: 'select',
    options: Object.entries(categories()).map(([value, label]) => ({value, label})),
  },
  {field: 'descr', label: t('descr'), wide: true},
];

const addresses = (): Spec[] => [
  {field: 'login_url', label: t('loginUrl'), help: t('loginHelp'), wide: true},
  {field: 'redirect_url', label: t('redirectUrl'), help: t('redirectHelp'), wide: true},
  {field: 'logout_url', label: t('logoutUrl'), wide: true},
  {field: 'domain_sn', label: t('domain'), help: t('domainHelp')},
];

const policy = (): Spec[] => {
  const onOff = [
    {value: '1', label: t('on')},
    {value: '0', label: t('off')},
  ];
  return [
    {field: 'sso_enabled', label: t('sso'), kind: 'select', options: onOff},
    {field: 'mfa_enabled', label: t('mfa'), kind: 'select', options: onOff, help: t('mfaHelp')},
    {field: 'sub_account_policy', label: t('policy'), help: t('policyHelp'), kind: 'select', options: onOff},
  ];
};

const props = (): Spec[] => [{field: 'free_ext_props', label: t('freeProps'), kind: 'json'}];

function Loaded({answer, again}: {answer: Answer<Application>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<Application>(answer, {
    scope: 'applications:write',
    kind: 'apps',
    load: () => full(getApplication({path: {id}})),
    save: (patch, etag) => full(updateApplication({path: {id}, body: patch, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
    again,
  });
  const app = draft.base.value;
  const groups: [string, Spec[]][] = [
    [t('general'), general()],
    [t('addresses'), addresses()],
    [t('signIn'), policy()],
  ];
  return (
    <RecordPanel
      title={app.name}
      lead={<Avatar large icon="app" name={app.name} src={logo(app.logo)} />}
      subtitle={
        <span class="row">
          <span class="clip">{protocolName(app.protocol_type)}</span>
          <AppStatus app={app} />
        </span>
      }
      actions={<Actions app={app} again={again} />}
      record={app}
      entity="application"
      draft={draft}
      labels={{sign_in_prop: t('samlSignOut'), ...labelsOf([...groups.flatMap(([, g]) => g), ...props()])}}
      overview={() => (
        <>
          {groups.map(([title, fields]) => (
            <section key={title} class="section">
              <h3>{title}</h3>
              <FormFields draft={draft} fields={fields} />
            </section>
          ))}
          <SignOut draft={draft} />
          <LogoSection app={app} again={again} />
          <section class="section">
            <h3>{t('record')}</h3>
            <Facts facts={facts(app)} />
          </section>
          <section class="section">
            <h3>{t('props')}</h3>
            <FormFields draft={draft} fields={props()} />
          </section>
        </>
      )}
      tabs={[
        {name: 'protocols', label: t('protocols'), content: () => <ProtocolsTab app={app} again={again} />},
        {name: 'secrets', label: t('secrets'), content: () => <SecretsTab answer={answer} again={again} />},
        {name: 'accounts', label: t('accounts'), content: () => <AccountsTab app={app} reload={again} />},
        {name: 'sources', label: t('sources'), content: () => <SourcesTab app={app} again={again} />},
      ]}
    />
  );
}

function facts(a: Application): [string, ComponentChildren][] {
  return [
    [t('id'), <Id>{a.id}</Id>],
    [t('clientId'), <Id>{a.client_id}</Id>],
    [t('template'), a.template_id],
    [t('scopes'), a.scopes.length ? <span class="mono">{a.scopes.join(' ')}</span> : ''],
    [t('created'), dateTime(a.time_created)],
    [t('modified'), <span title={dateTime(a.time_modified)}>{ago(a.time_modified)}</span>],
    [t('version'), a.version],
  ];
}
