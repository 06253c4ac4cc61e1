// How one user signs in: second factors, recovery codes, and where the user is signed in.
import {useSignal} from '@preact/signals';
import {
  deleteFactor,
  deleteSession,
  endSessions,
  listFactors,
  listSessions,
  renewRecoveryCodes,
  type Factor,
  type Session,
  type User,
} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {browserName} from '../../lib/browser';
import {ago, dateTime, number} from '../../lib/format';
import {changed, changes, useLoad} from '../../lib/load';
import {Button, Failed, Late, Tag} from '../../ui/basics';
import {Entries, Entry} from '../../ui/entries';
import {SecretDialog} from '../../ui/secret';
import {carryOut} from '../../ui/undo';
import {userName} from './index';
import {t} from './text';

const most = 50;

/** What rests on a factor ends a moment after it, in milliseconds. */
const endsWithin = 1500;

export function SignInOfUser({user}: {user: User}) {
  return (
    <>
      <section class="section">
        <h3>{t('factors')}</h3>
        <Factors user={user} />
      </section>
      <section class="section">
        <h3>{t('signedInAt')}</h3>
        <Sessions user={user} />
      </section>
    </>
  );
}

const kindOf = (f: Factor) => t(f.type === 'webauthn' ? 'passkey' : 'app');
const nameOf = (f: Factor) => f.name || kindOf(f);

function Factors({user}: {user: User}) {
  const name = userName(user);
  const codes = useSignal<string[]>([]);
  const {state, again} = useLoad(`factors ${user.id} ${changes.value.factors ?? 0}`, (signal) =>
    call(listFactors({query: {user_id: user.id, page_size: most, page_sort: 'time_created'}, signal})),
  );
  const {value, error, busy} = state.value;
  if (error) return <Failed error={error} again={again} />;
  const all = value?.items ?? [];
  const factors = all.filter((f) => f.type !== 'recovery_code');
  const recovery = all.find((f) => f.type === 'recovery_code');
  const after = () => {
    changed('factors');
    setTimeout(() => changed('sessions'), endsWithin);
  };
  const remove = (f: Factor) => {
    const send = () => call(deleteFactor({path: {id: f.id}}));
    return carryOut({
      ask: {
        title: t('factorRemoveTitle', {name: nameOf(f)}),
        text: t(factors.length > 1 ? 'factorRemoveText' : 'factorRemoveLast', {name}),
        yes: t('factorRemove'),
        danger: true,
        action: send,
      },
      send,
      said: t('factorRemoved', {name: nameOf(f)}),
      after,
    });
  };
  const renew = () =>
    carryOut({
      ask: {title: t('codesTitle', {name}), text: t('codesText'), yes: t('codesDo'), danger: true},
      send: async () => {
        codes.value = (await call(renewRecoveryCodes({path: {id: user.id}}))).codes ?? [];
      },
      said: t('codesDone', {name}),
      after,
    });
  return (
    <Late busy={busy && !value} lines={3}>
      {factors.length === 0 && value && <p class="muted">{t('factorsNone', {name})}</p>}
      {all.length > 0 && (
        <Entries>
          {factors.map((f) => (
            <Entry
              key={f.id}
              icon={f.type === 'webauthn' ? 'key' : 'clock'}
              title={nameOf(f)}
              facts={[
                f.name !== '' && kindOf(f),
                t('setUp', {time: ago(f.time_created)}),
                f.time_used !== null && t('lastUsed', {time: ago(f.time_used)}),
                browserName(f.browser),
                f.address,
              ]}
            >
              <Button
                small
                kind="ghost"
                icon="trash"
                scope="users:secrets"
                label={t('factorRemoveOf', {name: nameOf(f)})}
                onClick={() => void remove(f)}
              />
            </Entry>
          ))}
          {recovery && (
            <Entry
              icon="lock"
              title={t('recoveryCodes')}
              facts={[
                t('codesLeft', {n: number(recovery.codes_left)}),
                recovery.time_used !== null && t('lastUsed', {time: ago(recovery.time_used)}),
              ]}
            >
              <Button small icon="refresh" scope="users:secrets" onClick={() => void renew()}>
                {t('codesNew')}
              </Button>
            </Entry>
          )}
        </Entries>
      )}
      {codes.value.length > 0 && (
        <SecretDialog
          title={t('codesTitleNew', {name})}
          text={t('codesOnce')}
          values={[[t('recoveryCodes'), codes.value.join('\n')]]}
          file={{name: `${user.username}-recovery-codes.txt`, text: codes.value.join('\n') + '\n'}}
          close={() => {
            codes.value = [];
          }}
        />
      )}
    </Late>
  );
}

const browserOf = (s: Session) => browserName(s.browser) || t('aBrowser');

function Sessions({user}: {user: User}) {
  const name = userName(user);
  const {state, again} = useLoad(`sessions ${user.id} ${changes.value.sessions ?? 0}`, (signal) =>
    call(listSessions({query: {user_id: user.id, page_size: most}, signal})),
  );
  const {value, error, busy} = state.value;
  if (error) return <Failed error={error} again={again} />;
  const sessions = value?.items ?? [];
  const after = () => changed('sessions');
  const end = (s: Session) =>
    carryOut({
      send: () => call(deleteSession({path: {id: s.id}})),
      said: t('sessionEnded', {browser: browserOf(s)}),
      after,
    });
  const endAll = () => {
    const send = () => call(endSessions({body: {user_ids: [user.id]}}));
    return carryOut({
      ask: {title: t('signOutTitle', {name}), text: t('signOutText'), yes: t('signOut'), danger: true, action: send},
      send,
      said: t('signedOut', {name}),
      after,
    });
  };
  return (
    <Late busy={busy && !value} lines={3}>
      {sessions.length === 0 && value && <p class="muted">{t('sessionsNone', {name})}</p>}
      {sessions.length > 0 && (
        <Entries>
          {sessions.map((s) => (
            <Entry
              key={s.id}
              icon="screen"
              title={<span title={s.browser}>{browserOf(s)}</span>}
              facts={[
                s.address,
                t('since', {time: dateTime(s.time_signed_in)}),
                t('lastUsed', {time: ago(s.time_used)}),
              ]}
            >
              {s.amr.includes('mfa') && <Tag accent>{t('twoFactors')}</Tag>}
              <Button
                small
                kind="ghost"
                icon="out"
                scope="sign-in:write"
                label={t('sessionEnd', {browser: browserOf(s)})}
                onClick={() => void end(s)}
              />
            </Entry>
          ))}
        </Entries>
      )}
      {sessions.length > 0 && (
        <div>
          <Button icon="out" scope="sign-in:write" onClick={() => void endAll()}>
            {t('signOutAll')}
          </Button>
        </div>
      )}
    </Late>
  );
}
