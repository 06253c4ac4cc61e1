// Sign-in at an issuer: the button that leads there, what went wrong, and the tab that comes back for another.
import {useEffect} from 'preact/hooks';
import {texts} from '../lib/i18n';
import {backToTab, failure, session, tellSignedIn} from '../lib/session';
import {Icon, Mark} from './icon';

const t = texts({
  with: ['Sign in with {issuer}', '使用 {issuer} 登录'],
  newTab: ['Opens in a new tab', '在新标签页中打开'],
  done: ['You are signed in', '您已登录'],
  doneLead: ['Close this tab and go on in the one that you came from.', '请关闭此标签页，回到原来的标签页继续。'],
  failed: ['You are not signed in', '未能登录'],
  issuer_away: [
    '{issuer} does not answer. Try again in a moment, or sign in another way.',
    '{issuer} 没有响应。请稍后重试，或使用其他方式登录。',
  ],
  platform_away: ['The platform does not answer. Try again in a moment.', '平台没有响应。请稍后重试。'],
  issuer_refused: ['{issuer} has not signed you in ({error}).', '{issuer} 未允许您登录（{error}）。'],
  flow_unknown: [
    'The sign-in was begun in another browser, has been used, or is older than ten minutes. Begin again.',
    '此次登录由其他浏览器发起、已被使用，或已超过十分钟。请重新开始。',
  ],
  answer_invalid: [
    'The answer of {issuer} does not prove who you are. The log of the console says why.',
    '{issuer} 的应答无法证明您的身份。原因见控制台日志。',
  ],
  not_fresh: [
    '{issuer} did not ask you to sign in again, or does not say when you did (claim auth_time).',
    '{issuer} 没有要求您重新登录，或未说明登录时间（声明 auth_time）。',
  ],
  token_untrusted: [
    'The services do not accept the access token of {issuer}: see IDP_AUTH_OIDC.',
    '各服务不接受 {issuer} 的访问令牌：请检查 IDP_AUTH_OIDC。',
  ],
  token_no_scopes: [
    'The access token of {issuer} has no scope of the platform: see scope_claim in IDP_AUTH_OIDC.',
    '{issuer} 的访问令牌中没有平台的权限范围：请检查 IDP_AUTH_OIDC 的 scope_claim。',
  ],
  token_too_large: ['The access token of {issuer} is larger than 8 KiB.', '{issuer} 的访问令牌超过 8 KiB。'],
  not_secure: [
    'The console needs HTTPS, except on the machine that it runs on.',
    '除非在运行控制台的机器上访问，否则必须使用 HTTPS。',
  ],
  claims: ['It has the claims', '它包含的声明'],
  noJWT: ['It is not a JWT.', '它不是 JWT。'],
});

/** IssuerLink leads to the issuer: in a new tab if what is on this one must stay. */
export function IssuerLink({over, fresh}: {over?: boolean; fresh?: boolean}) {
  const issuer = session.value.oidc;
  if (!issuer) return null;
  const back = over ? backToTab : location.pathname + location.search;
  return (
    <a
      class="btn primary"
      href={`/console/~/oidc?return=${encodeURIComponent(back)}${fresh ? '&fresh' : ''}`}
      autofocus={over}
      target={over ? '_blank' : undefined}
      title={over ? t('newTab') : undefined}
    >
      <Icon name="key" />
      {t('with', {issuer})}
    </a>
  );
}

/** Failed says why the issuer signed nobody in. */
export function Failed() {
  const f = failure.value;
  if (!f) return null;
  const ofToken = f.code === 'token_untrusted' || f.code === 'token_no_scopes';
  return (
    <div class="note warn" role="alert">
      <Icon name="alert" />
      <div>
        <div class="title">{t('failed')}</div>
        <p>{t(f.code, {issuer: session.value.oidc ?? '', error: f.issuer ?? '?'})}</p>
        {ofToken && !f.claims && <p>{t('noJWT')}</p>}
        {ofToken && f.claims && (
          <p>
            {t('claims')}{' '}
            {f.claims.map((name, i) => (
              <>
                {i > 0 && ', '}
                <code key={name}>{name}</code>
              </>
            ))}
          </p>
        )}
      </div>
    </div>
  );
}

/** SignedInTab is the end of a sign-in that another tab waits for. */
export function SignedInTab() {
  useEffect(() => {
    tellSignedIn();
    close(); // browsers may refuse
  }, []);
  return (
    <main class="gate">
      <div class="gate-card">
        <Mark size={40} />
        <h1>{t('done')}</h1>
        <p class="muted" role="status">
          {t('doneLead')}
        </p>
      </div>
    </main>
  );
}
