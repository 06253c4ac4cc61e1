// The protocols of an application: each with its state, what it lacks before it can be enabled, and its settings.
import {useSignal} from '@preact/signals';
import {
  disableProtocol,
  enableProtocol,
  getProtocol,
  listProtocols,
  putProtocol,
  resetProtocolSecret,
  type Application,
  type Protocol,
  type ProtocolProp,
} from '@idplatform/sdk';
import {asProblem, call, full, type Answer, type ApiError} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {own} from '../../lib/own';
import {param, setQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Button, Failed, Late, Menu, Status, Tag} from '../../ui/basics';
import {Dialog, confirm, toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {Addresses, IssuingState, useIssuing} from '../../ui/issuing';
import {Faults, FormFields, useDraft, type Draft, type FieldSpec} from '../../ui/record';
import {SecretDialog} from '../../ui/secret';
import {t as ui} from '../../ui/text';
import {attempt, carryOut} from '../../ui/undo';
import {protocolName, protocols, t, type Kind} from './text';

const scope = 'applications:write';

interface State {
  kind: Kind;
  protocol?: Protocol;
  lacks?: ApiError; // of a disabled one: what enabling it, dry, says
}

// load asks for the protocols, and tries to enable the disabled ones, dry.
async function load(app: Application, signal: AbortSignal): Promise<State[]> {
  const list = await call(listProtocols({path: {id: app.id}, signal}));
  return Promise.all(
    protocols.map(async (kind) => {
      const protocol = list.find((p) => p.protocol_type === kind);
      if (!protocol || protocol.status === '1' || !may(scope)) return {kind, protocol};
      const path = {app_id: app.id, protocol_type: kind};
      const lacks = await call(enableProtocol({path, query: {dry_run: 'true'}, signal})).then(
        () => undefined,
        asProblem,
      );
      return {kind, protocol, lacks};
    }),
  );
}

export function ProtocolsTab({app, again}: {app: Application; again: () => void}) {
  const {state, again: reload} = useLoad(`protocols ${app.id} ${app.version}`, (signal) => load(app, signal));
  const {value, error, busy} = state.value;
  const issuing = useIssuing();
  const open = param('protocol');
  const secret = useSignal<{kind: Kind; secret: string} | undefined>(undefined);
  const done = () => {
    reload();
    again();
  };
  const shown = value?.find((s) => s.kind === open);
  if (error) return <Failed error={error} again={reload} />;
  const order = [...(value ?? [])].sort((a, b) => rank(app, a) - rank(app, b));
  const first = issuing.state.value.busy && issuing.state.value.value === undefined;
  return (
    <Late busy={(busy && !value) || first} lines={6}>
      <p class="muted">{t('protocolsText')}</p>
      <IssuingState of={issuing} />
      <ul class="cards">
        {order.map((s) => (
          <Row
            key={s.kind}
            app={app}
            state={s}
            issuer={issuing.state.value.value?.issuer}
            done={done}
            fresh={(text) => {
              secret.value = {kind: s.kind, secret: text};
            }}
          />
        ))}
      </ul>
      {shown && <Settings key={open} app={app} state={shown} done={done} />}
      {secret.value && (
        <SecretDialog
          title={t('secretTitle', {name: `${app.name} ${protocolName(secret.value.kind)}`})}
          text={t('secretText')}
          values={[[t('secret'), secret.value.secret]]}
          file={{name: `${app.name}-${secret.value.kind}-secret.txt`, text: `${secret.value.secret}\n`}}
          close={() => {
            secret.value = undefined;
            done();
          }}
        />
      )}
    </Late>
  );
}

// rank puts the application's own protocol first, then those that are set up.
function rank(app: Application, s: State): number {
  return s.kind === app.protocol_type ? 0 : s.protocol ? 1 : 2;
}

function Row({
  app,
  state: s,
  issuer,
  done,
  fresh,
}: {
  app: Application;
  state: State;
  issuer?: string; // of the tenant, if it is known
  done: () => void;
  fresh: (secret: string) => void;
}) {
  const busy = useSignal(false);
  const path = {app_id: app.id, protocol_type: s.kind};
  const name = protocolName(s.kind),
    on = s.protocol?.status === '1';
  const flip = (to: boolean) => (to ? call(enableProtocol({path})) : call(disableProtocol({path})));
  const toggle = async () => {
    const off = {title: t('protocolOffTitle', {name}), text: t('protocolOffText', {app: app.name}), yes: t('disable')};
    await carryOut({
      ask: on ? off : undefined,
      send: () => {
        busy.value = true;
        return flip(!on);
      },
      back: () => flip(on),
      said: t(on ? 'disabledDone' : 'enabledDone', {name}),
      after: done,
    });
    busy.value = false;
  };
  const reset = async () => {
    const yes = await confirm({title: t('resetTitle', {name}), text: t('resetText'), yes: t('reset'), danger: true});
    if (yes) await attempt(async () => fresh((await call(resetProtocolSecret({path}))).secret));
  };
  const open = () => void setQuery({protocol: s.kind});
  return (
    <li class={`card apps-protocol ${s.protocol ? '' : 'unset'}`}>
      <div class="row wrap">
        <strong>{name}</strong>
        {s.kind === app.protocol_type && <Tag accent>{t('main')}</Tag>}
        {s.protocol && <Status tone={on ? 'good' : 'off'}>{t(on ? 'enabled' : 'disabled')}</Status>}
        <span class="grow" />
        {!s.protocol && (
          <Button small scope={scope} onClick={open}>
            {t('setUp')}
          </Button>
        )}
        {s.protocol && (
          <>
            <Button small icon="gear" onClick={open}>
              {t('settings')}
            </Button>
            <Button small scope={scope} busy={busy.value} disabled={!on && !!s.lacks} onClick={() => void toggle()}>
              {t(on ? 'disable' : 'enable')}
            </Button>
            <Menu
              small
              kind="ghost"
              icon="more"
              label={ui('more')}
              items={[
                {label: t('resetSecret'), icon: 'refresh', scope: 'applications:secrets', onClick: () => void reset()},
              ]}
            />
          </>
        )}
      </div>
      <p class="faint">{t(`about_${s.kind}`)}</p>
      {s.protocol && issuer && <Addresses issuer={issuer} protocols={[s.kind]} />}
      {s.lacks && <Lacks error={s.lacks} kind={s.kind} />}
    </li>
  );
}

/** Lacks says what is missing before a protocol can be enabled, each with a link to where it is entered. */
function Lacks({error, kind}: {error: ApiError; kind: Kind}) {
  const faults = error.problem.errors ?? [];
  const go = (location: string) => void setQuery(location.includes('protocol_prop') ? {protocol: kind} : {tab: null});
  const names: Record<string, string> = {
    redirect_url: t('redirectUrl'),
    'protocol_prop.acs_url': t('acsUrl'),
    'protocol_prop.sp_entity': t('spEntity'),
  };
  if (!faults.length) return <Failed error={error} />;
  return (
    <div class="note warn">
      <Icon name="alert" />
      <div class="grow">
        <div class="title">{t('lacks')}</div>
        <ul>
          {faults.map((f) => {
            const at = f.location.replace(/^body\./, '');
            return (
              <li key={at}>
                <button type="button" class="apps-link" onClick={() => go(at)}>
                  {own(names, at) ?? at}
                </button>
                {!own(names, at) && <span lang="en"> {f.message}</span>}
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}

const formats = [
  'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
  'urn:oasis:names:tc:SAML:2.0:nameid-format:transient',
];
const digests = ['http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2001/04/xmlenc#sha512'];
const signatures = [
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
  'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256',
];

function choice(known: string[], now: string | undefined) {
  const all = now && !known.includes(now) ? [now, ...known] : known;
  return [{value: '', label: '—'}, ...all.map((value) => ({value, label: value.split(/[:#]/).pop()!}))];
}

function specs(kind: Kind, now: ProtocolProp): FieldSpec<ProtocolProp>[] {
  const attributes: FieldSpec<ProtocolProp> = {
    field: 'response_attr',
    label: t(kind === 'oidc' ? 'claims' : 'attributes'),
    help: t(kind === 'oidc' ? 'claimsHelp' : 'attributesHelp'),
    kind: 'json',
  };
  if (kind !== 'saml') return [attributes];
  return [
    {field: 'acs_url', label: t('acsUrl'), help: t('acsHelp'), wide: true},
    {field: 'sp_entity', label: t('spEntity'), help: t('spHelp'), wide: true},
    {
      field: 'name_identifier_format',
      label: t('nameFormat'),
      kind: 'select',
      options: choice(formats, now.name_identifier_format),
    },
    {field: 'lifetime_in_seconds', label: t('lifetime'), help: t('lifetimeHelp')},
    {field: 'digest_algorithm', label: t('digest'), kind: 'select', options: choice(digests, now.digest_algorithm)},
    {
      field: 'signature_algorithm',
      label: t('signature'),
      kind: 'select',
      options: choice(signatures, now.signature_algorithm),
    },
    {field: 'authn_context_class_ref', label: t('context'), wide: true},
    {field: 'saml_response_signing_cert', label: t('cert'), kind: 'textarea'},
    {field: 'saml_response_signing_key', label: t('certKey'), kind: 'textarea'},
    attributes,
  ];
}

// body is the whole record, as PUT wants it: what was emptied is left out.
function body(prop: ProtocolProp): ProtocolProp {
  const filled = Object.entries(prop).filter(([, v]) => v !== '' && v !== null && v !== undefined);
  const next = Object.fromEntries(filled) as ProtocolProp;
  if (next.lifetime_in_seconds !== undefined) next.lifetime_in_seconds = Number(next.lifetime_in_seconds) || 0;
  return next;
}

function Settings({app, state: s, done}: {app: Application; state: State; done: () => void}) {
  const path = {app_id: app.id, protocol_type: s.kind};
  const close = () => void setQuery({protocol: null});
  const answer = {
    data: s.protocol?.protocol_prop ?? {},
    etag: s.protocol ? `"${s.protocol.version}"` : '',
  } as Answer<ProtocolProp>;
  const load = async () => {
    const a = await full(getProtocol({path}));
    return {...a, data: a.data.protocol_prop, etag: `"${a.data.version}"`};
  };
  const put = async (prop: ProtocolProp, etag: string): Promise<Answer<ProtocolProp>> => {
    await call(putProtocol({path, body: {protocol_prop: body(prop)}, headers: etag ? {'If-Match': etag} : undefined}));
    return load();
  };
  const draft: Draft<ProtocolProp> = useDraft<ProtocolProp>(answer, {
    scope,
    load,
    save: (_, etag, whole) => put(whole, etag),
    saved: () => {
      void setQuery({protocol: null}, {replace: true, force: true});
      return t('savedDone', {name: protocolName(s.kind)});
    },
    undoable: () => s.protocol !== undefined,
    again: done,
  });
  const first = !s.protocol;
  const clash = draft.conflict.value !== undefined;
  return (
    <Dialog
      wide
      title={t('settingsTitle', {name: protocolName(s.kind)})}
      onClose={close}
      foot={
        <>
          <span class="muted start">
            {draft.count.value ? ui('changesCount', {n: draft.count.value}) : ui('noChanges')}
          </span>
          <Button onClick={close}>{ui('cancel')}</Button>
          <Button
            kind="primary"
            scope={scope}
            busy={draft.saving.value}
            disabled={!first && !draft.count.value}
            onClick={() => void (first && !draft.count.value ? setUp() : draft.save())}
          >
            {first ? t('setUp') : ui('save')}
          </Button>
        </>
      }
    >
      <Faults error={draft.error.value} />
      {clash && (
        <div class="note warn" role="alert">
          <Icon name="alert" />
          <div class="grow">{t('clash')}</div>
          <Button small onClick={() => draft.resolve({})}>
            {t('clashKeep')}
          </Button>
        </div>
      )}
      {s.kind !== 'saml' && (
        <p class="muted">
          {t('redirectNote')} <span class="mono">{app.redirect_url || '—'}</span>
        </p>
      )}
      <FormFields draft={draft} fields={specs(s.kind, draft.base.value)} />
    </Dialog>
  );

  async function setUp() {
    // without any setting
    await attempt(async () => {
      await put({}, '');
      toast(t('savedDone', {name: protocolName(s.kind)}));
      await setQuery({protocol: null}, {replace: true, force: true});
      done();
    });
  }
}
