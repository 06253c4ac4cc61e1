// The platform's version, and the issuers: of the tenant, for people, and of the platform, for programs.
import type {ComponentChildren} from 'preact';
import {getAuthorizationServerMetadata, getJwks, whoAmI, type JwkSet, type Metadata} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {place} from '../../lib/router';
import {Failed, Id, Late} from '../../ui/basics';
import {Addresses, IssuingState, issuerOf, Url, useIssuing} from '../../ui/issuing';
import {Facts} from '../../ui/record';
import {t} from './text';

/** Platform shows its parts together, so that none moves another when it comes. */
export function Platform() {
  const version = useLoad('platform version', (signal) => call(whoAmI({signal})));
  const issuing = useIssuing();
  const metadata = useLoad('metadata', load);
  const keys = useLoad('jwks', (signal) => call(getJwks({signal})));
  const busy = [version, issuing, metadata, keys].some(({state: {value: s}}) => s.busy && s.value === undefined);
  return (
    <div class="scroll">
      <div class="page settings-page">
        <Late busy={busy} lines={8}>
          <Part of={version}>{(v) => <Facts facts={[[t('version'), <Id>{v.platform_version}</Id>]]} />}</Part>
          <section class="section">
            <h2>{t('tenantIssuer', {tenant: place.value.tenant})}</h2>
            <IssuingState of={issuing} />
            {issuing.state.value.value && <Addresses issuer={issuing.state.value.value.issuer} />}
          </section>
          <section class="section">
            <h2>{t('metadata')}</h2>
            <p class="muted">{t('metadataText')}</p>
            <Part of={metadata}>{(m) => <Endpoints of={m} />}</Part>
          </section>
          <section class="section">
            <h2>{t('publicKeys')}</h2>
            <p class="muted">{t('publicKeysText')}</p>
            <Part of={keys}>{(k) => <PublicKeys of={k} />}</Part>
          </section>
        </Late>
      </div>
    </div>
  );
}

/** Part shows what was loaded, or why it was not: it fails alone. */
function Part<T>({of, children}: {of: ReturnType<typeof useLoad<T>>; children: (value: T) => ComponentChildren}) {
  const {value, error} = of.state.value;
  if (error) return <Failed error={error} again={of.again} />;
  return <>{value !== undefined && children(value)}</>;
}

/** The metadata are outside of /v1, so they are asked for where the page is: a console of its own host has none. */
async function load(signal: AbortSignal): Promise<Metadata | null> {
  const metadata = call(getAuthorizationServerMetadata({baseUrl: '', signal}));
  return (await issuerOf(metadata)) ? metadata : null;
}

const endpoints = ['token_endpoint', 'jwks_uri', 'introspection_endpoint', 'revocation_endpoint'] as const;

function Endpoints({of: m}: {of: Metadata | null}) {
  if (!m) return <p class="note">{t('metadataAway')}</p>;
  return (
    <Facts
      facts={[
        [t('issuer'), <Url name={t('issuer')}>{m.issuer}</Url>],
        ...endpoints.map((name): [string, ComponentChildren] => [t(name), <Url name={t(name)}>{m[name]}</Url>]),
        [t('grants'), <span class="mono">{m.grant_types_supported.join(', ')}</span>],
        [t('clientAuth'), <span class="mono">{m.token_endpoint_auth_methods_supported.join(', ')}</span>],
        [t('algorithms'), <span class="mono">{m.token_endpoint_auth_signing_alg_values_supported.join(', ')}</span>],
        [
          t('apiDocs'),
          <a href={m.service_documentation} target="_blank" rel="noopener noreferrer">
            {m.service_documentation}
          </a>,
        ],
      ]}
    />
  );
}

function PublicKeys({of: {keys}}: {of: JwkSet}) {
  return (
    <ul class="cards">
      {keys.map((k) => (
        <li key={String(k.kid)} class="card row wrap spread">
          <Id>{String(k.kid)}</Id>
          <span class="muted">
            {t('algorithm')} <span class="mono">{String(k.alg)}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
