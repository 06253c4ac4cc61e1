// What people call providers of identities, by their codes, and the connections to them.
import type {Connection} from '@idplatform/sdk';
import {texts} from '../lib/i18n';

const providers = texts({
  active_directory: ['Active Directory', 'Active Directory'],
  alipay: ['Alipay', '支付宝'],
  apple: ['Apple', 'Apple'],
  cas: ['CAS', 'CAS'],
  dingding_scan_qr: ['DingTalk', '钉钉'],
  feishu_scan_qr: ['Feishu', '飞书'],
  github: ['GitHub', 'GitHub'],
  gitlab: ['GitLab', 'GitLab'],
  google: ['Google', 'Google'],
  idp_native_db: ['Native database', '本地数据库'],
  ldap: ['LDAP', 'LDAP'],
  mfa_mail: ['Mail code', '邮件验证码'],
  mfa_otp: ['One-time password app', '动态口令应用'],
  mfa_sms: ['SMS code', '短信验证码'],
  mfa_webauthn: ['Passkey or security key', '通行密钥或安全密钥'],
  microsoft: ['Microsoft Entra ID', 'Microsoft Entra ID'],
  oidc: ['OpenID Connect', 'OpenID Connect'],
  qywechat_scan_qr: ['WeCom', '企业微信'],
  saml: ['SAML 2.0', 'SAML 2.0'],
  wechat_scan_qr: ['WeChat', '微信'],
});

/** providerName is what people call a provider; of one that is not known here, the name that it brings. */
export function providerName({provider_code: code, name}: {provider_code: string; name?: string}): string {
  const word = providers.word('', code);
  return word === code ? name || code : word;
}

export const connectionName = (c: Connection) => c.display_name || providerName(c);
