// Where applications find the sign-in service of the tenant that is shown.
import type {ComponentChildren} from 'preact';
import {getAuthorizationServerMetadata, getOpenidConfiguration} from '@idplatform/sdk';
import {asProblem, call} from '../lib/api';
import {texts} from '../lib/i18n';
import {useLoad} from '../lib/load';
import {place} from '../lib/router';
import {Copy, Failed} from './basics';
import {Facts} from './record';

const t = texts({
  issuer: ['Issuer', '签发者'],
  discovery: ['Discovery document', '发现文档'],
  saml: ['SAML metadata, entity id', 'SAML 元数据（实体标识）'],
  cas: ['CAS address', 'CAS 地址'],
  copy: ['Copy: {name}', '复制：{name}'],
  none: [
    'Tenant {tenant} has no applications yet, so nothing answers at these addresses (404). They work once there is one.',
    '租户 {tenant} 还没有应用，因此这些地址暂无响应（404）。有应用后即可使用。',
  ],
  away: [
    'The console is on a host of its own. Applications use <public URL>/sign-in/{tenant}.',
    '控制台使用独立的主机。应用使用 <公开地址>/sign-in/{tenant}。',
  ],
});

/** Issuing is the issuer of a tenant; ready is false while it has no applications: nothing answers there then. */
interface Issuing {
  issuer: string;
  ready: boolean;
}

/** issuerOf returns the issuer in a metadata document; '' if there is none where the page is. */
export async function issuerOf(document: Promise<{issuer?: string}>): Promise<string> {
  try {
    const {issuer} = await document;
    return typeof issuer === 'string' ? issuer : '';
  } catch (e) {
    if (asProblem(e).problem.status === 404) return '';
    throw e;
  }
}

// Metadata are outside of /v1, so they are asked for where the page is: a console of its own host has none.
export async function issuingOf(tenant: string, signal?: AbortSignal): Promise<Issuing | null> {
  const own = await issuerOf(call(getOpenidConfiguration({baseUrl: '', path: {tenant}, signal})));
  if (own) return {issuer: own, ready: true};
  const platform = await issuerOf(call(getAuthorizationServerMetadata({baseUrl: '', signal})));
  return platform ? {issuer: `${platform}/sign-in/${encodeURIComponent(tenant)}`, ready: false} : null;
}

export function useIssuing() {
  const {tenant} = place.value;
  return useLoad(`issuer ${tenant}`, (signal) => issuingOf(tenant, signal));
}

/** Url shows an address that can be copied. */
export function Url({children, name}: {children: string; name?: string}) {
  return (
    <span class="row">
      <span class="mono url">{children}</span>
      <Copy text={children} label={name && t('copy', {name})} />
    </span>
  );
}

const all = ['oidc', 'saml', 'cas'];

/** Addresses are those that an application needs to know for some protocols, or for all. */
export function Addresses({issuer, protocols = all}: {issuer: string; protocols?: string[]}) {
  const has = (...kinds: string[]) => kinds.some((kind) => protocols.includes(kind));
  const rows: [boolean, string, string][] = [
    [has('oidc', 'oauth2'), t('issuer'), issuer],
    [has('oidc', 'oauth2'), t('discovery'), `${issuer}/.well-known/openid-configuration`],
    [has('saml'), t('saml'), `${issuer}/saml/metadata`],
    [has('cas'), t('cas'), `${issuer}/cas`],
  ];
  const shown = rows.filter(([is]) => is);
  if (!shown.length) return null;
  return (
    <Facts facts={shown.map(([, name, url]): [string, ComponentChildren] => [name, <Url name={name}>{url}</Url>])} />
  );
}

/** IssuingState says why there are no addresses, or that nothing answers at them yet. */
export function IssuingState({of: {state, again}}: {of: ReturnType<typeof useIssuing>}) {
  const {value, error} = state.value;
  const {tenant} = place.value;
  if (error) return <Failed error={error} again={again} />;
  if (value === null) return <p class="note">{t('away', {tenant})}</p>;
  return value?.ready === false ? <p class="note">{t('none', {tenant})}</p> : null;
}
