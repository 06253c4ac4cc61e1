// The page of the sign-in, and the same over a screen whose session has ended.
import {useSignal} from '@preact/signals';
import {useEffect, useId} from 'preact/hooks';
import {texts} from '../lib/i18n';
import {go, href, place} from '../lib/router';
import {asking, failure, session, settle, signIn, signInWithCode, SignInError} from '../lib/session';
import {Button} from './basics';
import {Dialog} from './dialog';
import {Icon, Mark} from './icon';
import {Failed, IssuerLink} from './issuer';
import {Looks} from './shell/rail';

const t = texts({
  title: ['Sign in', '登录'],
  lead: ['With the id and secret of an application that may administer.', '使用具有管理权限的应用的标识和密钥。'],
  id: ['Client id', '客户端标识'],
  secret: ['Client secret', '客户端密钥'],
  submit: ['Sign in', '登录'],
  link: [
    'On the machine that runs the platform, `idp-standalone console` prints a link that signs in at once.',
    '在运行平台的机器上执行 `idp-standalone console`，会打印一个直接登录的链接。',
  ],
  signingIn: ['Signing in with the link…', '正在通过链接登录…'],
  linkFailed: ['This link cannot be used any more', '此链接已失效'],
  linkHint: [
    'A link is good once, for two minutes. `idp-standalone console` prints a new one.',
    '链接只能使用一次，两分钟内有效。执行 `idp-standalone console` 可获取新链接。',
  ],
  wrong: ['The client id or the secret is wrong', '客户端标识或密钥错误'],
  away: ['The platform does not answer', '平台没有响应'],
  insecure: [
    'The console needs HTTPS, except on the machine that it runs on. Nothing was sent.',
    '除非在运行控制台的机器上访问，否则必须使用 HTTPS。未发送任何内容。',
  ],
  forbidden: ['This application may not sign in', '此应用不能登录'],
  many: ['Too many attempts: wait a minute', '尝试次数过多：请稍候一分钟'],
  linkAgain: [
    'Or open a new link of `idp-standalone console` in another tab. This tab then goes on by itself.',
    '也可以在另一个标签页打开 `idp-standalone console` 的新链接。此标签页随后会自动继续。',
  ],
  again: ['Your session has ended', '会话已结束'],
  againLead: [
    'Sign in again to go on. Nothing that you have typed is lost.',
    '请重新登录以继续。您输入的内容不会丢失。',
  ],
  old: ['Sign in again for this', '此操作需要重新登录'],
  oldLead: [
    'What shows a secret, or deletes many records, wants a sign-in of the last five minutes. It goes on after it.',
    '显示密钥或大量删除的操作要求最近五分钟内登录过。登录后将自动继续。',
  ],
  off: ['Signing in with a secret is turned off here.', '此处已关闭密钥登录。'],
});

export function SignInPage() {
  const code = place.value.signIn && place.value.hash.length > 1 ? place.value.hash.slice(1) : '';
  const state = useSignal<'form' | 'link' | 'failed'>(code ? 'link' : 'form');
  useEffect(() => {
    if (!code) return;
    history.replaceState(history.state, '', '/console/sign-in'); // the code must not stay in the history
    signInWithCode(code).then(enter, () => {
      state.value = 'failed';
    });
  }, []);
  return (
    <main class="gate">
      <div class="gate-card">
        <Mark size={40} />
        {state.value === 'link' ? (
          <div class="row" role="status">
            <span class="spin" />
            {t('signingIn')}
          </div>
        ) : (
          <>
            <div>
              <h1>{t('title')}</h1>
            </div>
            {state.value === 'failed' && (
              <div class="note warn" role="alert">
                <Icon name="alert" />
                <div>
                  <div class="title">{t('linkFailed')}</div>
                  <Marked text={t('linkHint')} />
                </div>
              </div>
            )}
            <Failed />
            <IssuerLink fresh={failure.value?.code === 'not_fresh'} />
            <Form done={enter} />
            <p class="faint">
              <Marked text={t('link')} />
            </p>
          </>
        )}
      </div>
      <div class="gate-foot">
        <Looks />
      </div>
    </main>
  );
}

/** enter opens the screen that the address names, or the start. */
function enter(): void {
  failure.value = undefined;
  const {tenant, screen} = place.value;
  const own = session.value.tenant_id ?? 'default';
  if (!tenant || !screen) void go(href('start', [], {}, own), {replace: true, force: true});
}

/** Marked shows `code` in a text as such. */
function Marked({text}: {text: string}) {
  return <>{text.split('`').map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>;
}

function Form({done}: {done: () => void}) {
  const id = useSignal(session.value.client_id ?? ''),
    secret = useSignal('');
  const fault = useSignal(session.value.secure ? '' : t('insecure'));
  const busy = useSignal(false);
  const idField = useId(),
    secretField = useId();
  if (!session.value.client_sign_in) return session.value.oidc ? null : <p class="muted">{t('off')}</p>;
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy.value) return;
    busy.value = true;
    fault.value = '';
    try {
      await signIn(id.value.trim(), secret.value.trim());
      secret.value = '';
      done();
    } catch (e2) {
      const {code, status} = e2 as SignInError;
      fault.value =
        code === 'invalid_state'
          ? t('insecure')
          : status === 401 || code === 'invalid_parameters'
            ? t('wrong')
            : code === 'forbidden'
              ? t('forbidden')
              : status === 429
                ? t('many')
                : t('away');
    } finally {
      busy.value = false;
    }
  };
  return (
    <form onSubmit={submit} aria-describedby={`${idField}-lead`}>
      <p class="muted" id={`${idField}-lead`}>
        {t('lead')}
      </p>
      <div class="field">
        <label for={idField}>{t('id')}</label>
        <input
          id={idField}
          class="input mono"
          name="username"
          autocomplete="username"
          required
          spellcheck={false}
          value={id.value}
          onInput={(e) => {
            id.value = e.currentTarget.value;
          }}
        />
      </div>
      <div class="field">
        <label for={secretField}>{t('secret')}</label>
        <input
          id={secretField}
          class="input mono"
          type="password"
          name="password"
          autocomplete="current-password"
          required
          value={secret.value}
          aria-invalid={fault.value ? true : undefined}
          aria-describedby={`${secretField}-fault`}
          onInput={(e) => {
            secret.value = e.currentTarget.value;
          }}
        />
        <span class="error" id={`${secretField}-fault`} role="alert">
          {fault.value && (
            <>
              <Icon name="alert" size={12} />
              {fault.value}
            </>
          )}
        </span>
      </div>
      <Button type="submit" kind={session.value.oidc ? undefined : 'primary'} busy={busy.value}>
        {t('submit')}
      </Button>
    </form>
  );
}

/** SignInAgain is over the screen whose session has ended, or is too old for a call: what was typed stays. */
export function SignInAgain() {
  const why = asking.value;
  if (!why) return null;
  const old = why === 'old';
  return (
    <Dialog title={t(old ? 'old' : 'again')} onClose={() => old && settle(false)}>
      <p class="muted">{t(old ? 'oldLead' : 'againLead')}</p>
      <div class="gate over">
        <div class="gate-card">
          <IssuerLink over fresh={old} />
          <Form done={() => undefined} />
          <p class="faint">
            <Marked text={t('linkAgain')} />
          </p>
        </div>
      </div>
    </Dialog>
  );
}
