// How an application proves who it is: secrets, which rotate without downtime, or its own keys.
import {useSignal} from '@preact/signals';
import {getApplication, refreshSecrets, updateApplication, type Application} from '@idplatform/sdk';
import {call, full, type Answer} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {Blank, Button, Copy, Status} from '../../ui/basics';
import {ConflictDialog, Faults, FormDialog, FormFields, useDraft, type FieldSpec, SelectField} from '../../ui/record';
import {SecretDialog} from '../../ui/secret';
import {t as ui} from '../../ui/text';
import {t} from './text';

const graces = [0, 3600, 86_400, 604_800, 2_592_000];

export function SecretsTab({answer, again}: {answer: Answer<Application>; again: () => void}) {
  const app = answer.data;
  const rotating = useSignal(false);
  const isPublic = app.category === '2' || app.category === '3'; // a secret cannot be kept where it runs
  const rotate = isPublic ? undefined : (
    <Button
      icon="refresh"
      scope="applications:secrets"
      onClick={() => {
        rotating.value = true;
      }}
    >
      {t(app.secrets.length ? 'rotate' : 'firstSecret')}
    </Button>
  );
  return (
    <>
      <section class="section">
        <h3>{t('clientId')}</h3>
        <div class="row">
          <code class="json grow secret">{app.client_id}</code>
          <Copy text={app.client_id} small={false} />
        </div>
      </section>
      <section class="section">
        <div class="row spread">
          <h3>{t('secrets')}</h3>
          {app.secrets.length > 0 && rotate}
        </div>
        {app.secrets.length === 0 && (
          <Blank icon="key" title={t('noSecret')} action={rotate}>
            {t(isPublic ? 'publicText' : 'noSecretText')}
          </Blank>
        )}
        {app.secrets.length > 0 && (
          <table class="plain">
            <thead>
              <tr>
                <th scope="col" class="hint">
                  {t('secret')}
                </th>
                <th scope="col">{t('created')}</th>
                <th scope="col">{t('works')}</th>
              </tr>
            </thead>
            <tbody>
              {[...app.secrets].reverse().map((s) => (
                <tr key={s.id}>
                  <td class="mono">{s.hint}</td>
                  <td title={dateTime(s.time_created)}>{ago(s.time_created)}</td>
                  <td>
                    {s.time_expires ? (
                      <Status tone="warn">{t('until', {time: dateTime(s.time_expires)})}</Status>
                    ) : (
                      <Status tone="good">{t('forever')}</Status>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <Keys answer={answer} again={again} />
      {rotating.value && (
        <Rotate
          app={app}
          close={() => {
            rotating.value = false;
            again();
            changed('apps');
          }}
        />
      )}
    </>
  );
}

function graceText(seconds: number): string {
  if (seconds === 0) return t('graceNone');
  return seconds < 86_400 ? t('graceHours', {n: seconds / 3600}) : t('graceDays', {n: seconds / 86_400});
}

/** AppSecret shows a fresh secret of an application. */
export function AppSecret({
  app,
  secret,
  note,
  close,
}: {
  app: {name: string; client_id: string};
  secret: string;
  note?: string;
  close: () => void;
}) {
  return (
    <SecretDialog
      title={t('secretTitle', {name: app.name})}
      text={[t('secretText'), note].filter(Boolean).join(' ')}
      values={[
        [t('clientId'), app.client_id],
        [t('secret'), secret],
      ]}
      file={{name: `${app.name}-secret.txt`, text: `client_id=${app.client_id}\nclient_secret=${secret}\n`}}
      close={close}
    />
  );
}

function Rotate({app, close}: {app: Application; close: () => void}) {
  const grace = useSignal(app.secrets.length ? 86_400 : 0);
  const fresh = useSignal<{secret: string; old: string} | undefined>(undefined);
  const had = app.secrets.length > 0;
  const end = new Date(Date.now() + grace.value * 1000).toISOString();
  if (fresh.value) {
    const note = !had ? '' : grace.value ? t('oldUntil', {time: dateTime(fresh.value.old)}) : t('oldEnded');
    return <AppSecret app={app} secret={fresh.value.secret} note={note} close={close} />;
  }
  return (
    <FormDialog
      title={t('rotateTitle', {name: app.name})}
      yes={t('rotateDo')}
      close={close}
      submit={(key) =>
        call(
          refreshSecrets({path: {id: app.id}, query: {grace_seconds: grace.value}, headers: {'Idempotency-Key': key}}),
        )
      }
      done={(made) => {
        fresh.value = {secret: made.client_secret, old: made.time_expires_old};
      }}
    >
      {() => (
        <>
          {had && (
            <SelectField
              label={t('grace')}
              value={String(grace.value)}
              set={(v) => {
                grace.value = Number(v);
              }}
            >
              {graces.map((s) => (
                <option key={s} value={String(s)}>
                  {graceText(s)}
                </option>
              ))}
            </SelectField>
          )}
          <ul class="apps-effects">
            <li>{t('effectNew')}</li>
            {had && grace.value === 0 && <li>{t('effectOldNow')}</li>}
            {grace.value > 0 &&
              app.secrets.map(
                (
                  s, // one that ends sooner anyway keeps its end
                ) => (
                  <li key={s.id}>
                    {t('effectOld', {
                      secret: s.hint,
                      time: dateTime(s.time_expires && s.time_expires < end ? s.time_expires : end),
                    })}
                  </li>
                ),
              )}
            <li>
              <strong>{t('effectTokens')}</strong>
            </li>
          </ul>
        </>
      )}
    </FormDialog>
  );
}

const specs = (): FieldSpec<Application>[] => [
  {field: 'jwks_uri', label: t('jwksUri'), help: t('jwksUriHelp'), wide: true},
  {field: 'jwks', label: t('jwks'), help: t('jwksHelp'), kind: 'json'},
];

function Keys({answer, again}: {answer: Answer<Application>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<Application>(answer, {
    scope: 'applications:write',
    kind: 'apps',
    load: () => full(getApplication({path: {id}})),
    save: (patch, etag) => full(updateApplication({path: {id}, body: patch, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
    again,
  });
  return (
    <section class="section">
      <div>
        <h3>{t('keys')}</h3>
        <p class="muted">{t('keysText')}</p>
      </div>
      <Faults error={draft.error.value} />
      <FormFields draft={draft} fields={specs()} />
      <div class="row">
        <Button
          kind="primary"
          scope="applications:write"
          disabled={!draft.count.value}
          busy={draft.saving.value}
          onClick={() => void draft.save()}
        >
          {ui('save')}
        </Button>
        {draft.count.value > 0 && (
          <Button kind="ghost" onClick={draft.discard}>
            {ui('discard')}
          </Button>
        )}
      </div>
      <ConflictDialog draft={draft} labels={{}} entity="application" />
    </section>
  );
}
