import {useSignal} from '@preact/signals';
import {asCurl, asIdp, bodyFile} from '../../lib/commands';
import {timeOfDay} from '../../lib/format';
import {texts} from '../../lib/i18n';
import {store, stored} from '../../lib/storage';
import {mask, type Write} from '../../lib/writes';
import {Blank, Copy, Status, Tabs} from '../basics';
import {Dialog} from '../dialog';

const t = texts({
  one: ['As a command', '显示为命令'],
  all: ['Last changes as commands', '最近的更改（命令）'],
  change: ['Change', '更改'],
  notSent: ['Not sent yet', '尚未发送'],
  sent: ['Sent at {time}', '发送于 {time}'],
  noAnswer: ['no answer', '无应答'],
  command: ['The command', '命令'],
  copy: ['Copy the command', '复制命令'],
  masked: ['Secrets are shown as {mask}. Put them in before you run it.', '密钥显示为 {mask}，运行前请填入。'],
  token: [
    'TOKEN is an access token of your own; the one of this session is not shown anywhere.',
    'TOKEN 是您自己的访问令牌；本会话的令牌不会显示在任何地方。',
  ],
  context: ['It goes to the server and the tenant of your context.', '命令发往您当前上下文的服务器和租户。'],
  version: ['It is refused if the record has been changed since.', '如果记录此后被更改，命令会被拒绝。'],
  key: [
    'Sent once more with the same Idempotency-Key, it gets the first answer again and changes nothing: choose another key to do it once more.',
    '以相同的 Idempotency-Key 再次发送会得到首次的应答，不再更改任何内容：如需再次执行，请换用新的键。',
  ],
  file: ['The body is longer than fits here. Put it into {file}.', '正文过长，未在此显示。请放入 {file}。'],
  none: ['Nothing has been changed on this page yet', '此页面尚未更改任何内容'],
  noneText: [
    'Everything that you change appears here, as the command that does the same.',
    '您所做的每次更改都会以等效命令的形式出现在这里。',
  ],
});

type Form = 'idp' | 'curl';

/** ShowAsDialog shows one write, or lets a person choose among those that were made. */
export function ShowAsDialog({shown, made, close}: {shown: Write | 'all'; made: Write[]; close: () => void}) {
  const at = useSignal(0);
  const write = shown === 'all' ? made[at.value] : shown;
  return (
    <Dialog wide title={t(shown === 'all' ? 'all' : 'one')} onClose={close}>
      {shown === 'all' && made.length > 1 && (
        <label class="field">
          <span class="label">{t('change')}</span>
          <select
            class="select mono"
            value={String(at.value)}
            onChange={(e) => {
              at.value = Number(e.currentTarget.value);
            }}
          >
            {made.map((w, i) => (
              <option key={i} value={String(i)}>
                {timeOfDay(w.time)} {asIdp(w).split(' \\\n')[0]!.replace('idp api ', '')}
              </option>
            ))}
          </select>
        </label>
      )}
      {write ? (
        <Command write={write} />
      ) : (
        <Blank icon="code" title={t('none')}>
          {t('noneText')}
        </Blank>
      )}
    </Dialog>
  );
}

function Command({write: w}: {write: Write}) {
  const form = useSignal<Form>(stored('showAs') === 'curl' ? 'curl' : 'idp');
  const text = form.value === 'curl' ? asCurl(w) : asIdp(w);
  const sent = w.status !== undefined;
  const notes = [
    form.value === 'curl' ? t('token') : t('context'),
    w.headers['If-Match'] && t('version'),
    sent && form.value === 'curl' && w.headers['Idempotency-Key'] && t('key'),
    w.masked && t('masked', {mask}),
    w.file !== undefined && t('file', {file: bodyFile(w)}),
  ];
  return (
    <div class="show-as-command">
      <Tabs
        tabs={[
          {name: 'idp', label: 'idp'},
          {name: 'curl', label: 'curl'},
        ]}
        current={form.value}
        label={t('command')}
        choose={(name) => {
          form.value = name as Form;
          store('showAs', name);
        }}
      />
      <div class="show-as-text">
        <pre class="json" tabIndex={0} aria-label={t('command')}>
          {text}
        </pre>
        <Copy text={text} label={t('copy')} />
      </div>
      <div class="row spread">
        {sent ? (
          <Status tone={w.status! < 400 ? 'good' : 'bad'}>
            {t('sent', {time: timeOfDay(w.time)})} · {w.status}
          </Status>
        ) : (
          <Status tone="off">{t('notSent')}</Status>
        )}
      </div>
      <ul class="show-as-notes muted">
        {notes.filter(Boolean).map((n) => (
          <li key={n}>{n}</li>
        ))}
      </ul>
    </div>
  );
}
