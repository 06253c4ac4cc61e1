// One user: overview and form, audit, JSON; and what can be done with the user.
import type {ComponentChildren} from 'preact';
import {useSignal} from '@preact/signals';
import {
  deleteUser,
  getUser,
  inviteUser,
  lockUser,
  reinstateUser,
  resetPassword,
  unlockUser,
  updateUser,
  type User,
} from '@idplatform/sdk';
import {call, full, type Answer} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {may} from '../../lib/session';
import {Avatar, Button, Id, type MenuItem} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {
  Facts,
  FormDialog,
  FormFields,
  PanelLoad,
  RecordMenu,
  RecordPanel,
  labelsOf,
  useDraft,
  type FieldSpec,
  TextField,
} from '../../ui/record';
import {SecretDialog} from '../../ui/secret';
import {t as ui} from '../../ui/text';
import {carryOut, undone} from '../../ui/undo';
import {OfUser} from '../members/panel';
import {Effects, everything, signedIn} from './effects';
import {UserStatus, userName} from './index';
import {Disable, Offboard, setStatus, type ActionDialog} from './offboard';
import {SignInOfUser} from './signin';
import {t} from './text';

export function UserPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getUser({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

const identity = (): FieldSpec<User>[] => [
  {field: 'username', label: t('username'), help: t('usernameHelp')},
  {field: 'display_name', label: t('display')},
  {field: 'employee_number', label: t('number')},
];

const contact = (): FieldSpec<User>[] => [
  {field: 'email', label: t('email'), kind: 'email'},
  {field: 'mobile', label: t('mobile'), kind: 'tel'},
  {field: 'locale', label: t('locale')},
  {field: 'zoneinfo', label: t('zone')},
];

const props = (): FieldSpec<User>[] => [{field: 'free_ext_props', label: t('freeProps'), kind: 'json'}];

function Loaded({answer, again}: {answer: Answer<User>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<User>(answer, {
    scope: 'users:write',
    kind: 'users',
    load: () => full(getUser({path: {id}})),
    save: (patch, etag) => full(updateUser({path: {id}, body: patch, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: userName(now)}),
    again,
  });
  const user = draft.base.value;
  const name = userName(user);
  return (
    <RecordPanel
      title={name}
      lead={<Avatar large name={name} src={user.avatar_url} />}
      subtitle={
        <span class="row">
          <span class="mono clip">{user.username}</span>
          <UserStatus user={user} />
        </span>
      }
      actions={<Actions user={user} again={again} />}
      record={user}
      entity="user"
      draft={draft}
      labels={labelsOf([...identity(), ...contact(), ...props()])}
      overview={() => (
        <>
          <section class="section">
            <h3>{t('general')}</h3>
            <FormFields draft={draft} fields={identity()} />
          </section>
          <section class="section">
            <h3>{t('contact')}</h3>
            <FormFields draft={draft} fields={contact()} />
          </section>
          <section class="section">
            <h3>{t('account')}</h3>
            <Facts facts={facts(user)} />
          </section>
          <section class="section">
            <h3>{t('props')}</h3>
            <FormFields draft={draft} fields={props()} />
          </section>
        </>
      )}
      tabs={[
        {name: 'memberships', label: t('memberships'), content: () => <OfUser id={id} />},
        ...(may('sign-in:read')
          ? [{name: 'sign-in', label: t('signIn'), content: () => <SignInOfUser user={user} />}]
          : []),
      ]}
    />
  );
}

function facts(u: User): [string, ComponentChildren][] {
  return [
    [t('id'), <Id>{u.id}</Id>],
    [t('status'), <UserStatus user={u} />],
    [t(u.status === 'resigned' ? 'leftAt' : 'leaves'), dateTime(u.time_resigned)],
    [
      t('locked'),
      u.locked
        ? [u.lock_reason, u.locked_until && t('lockedUntil', {time: dateTime(u.locked_until)})]
            .filter(Boolean)
            .join(' · ') || ui('yes')
        : '',
    ],
    [
      t('password'),
      u.password_set
        ? [t('passwordSet'), u.must_change_password && t('mustChange')].filter(Boolean).join(' · ')
        : t('passwordNone'),
    ],
    [
      t('lastLogin'),
      u.time_last_login ? <span title={dateTime(u.time_last_login)}>{ago(u.time_last_login)}</span> : '',
    ],
    [t('created'), dateTime(u.time_created)],
    [t('modified'), <span title={dateTime(u.time_modified)}>{ago(u.time_modified)}</span>],
    [t('version'), <span class="num">{u.version}</span>],
  ];
}

function Actions({user, again}: {user: User; again: () => void}) {
  const dialog = useSignal<'' | 'lock' | 'invite' | 'reset' | 'disable' | 'offboard'>('');
  const name = userName(user);
  const path = {id: user.id};
  const after = () => {
    changed('users');
    again();
  };
  const close = () => {
    dialog.value = '';
  };
  const unlock = () => carryOut({send: () => call(unlockUser({path})), said: t('unlockedDone', {name}), after});
  const ask = (what: typeof dialog.value) => () => {
    dialog.value = what;
  };
  const enable = () =>
    void carryOut({send: () => setStatus(user.id, '1', `"${user.version}"`), said: t('enabledDone', {name}), after});
  const reinstate = () =>
    void carryOut({
      send: () => call(reinstateUser({path})),
      said: t(user.status === 'resigned' ? 'reinstated' : 'stays', {name}),
      after,
    });
  const scope = 'users:write';
  const items: (MenuItem | false)[] = [
    user.locked
      ? {label: t('unlock'), icon: 'unlock', scope, onClick: () => void unlock()}
      : {label: t('lock'), icon: 'lock', scope, onClick: ask('lock')},
    !user.password_set &&
      user.status === '1' && {label: t('invite'), icon: 'mail', scope: 'users:secrets', onClick: ask('invite')},
    {label: t('resetPassword'), icon: 'key', scope: 'users:secrets', onClick: ask('reset')},
    user.status === '1' && {label: t('disableMore'), icon: 'pause', scope, onClick: ask('disable')},
    user.status === '0' && {label: t('enable'), icon: 'play', scope, onClick: enable},
    user.time_resigned
      ? {label: t(user.status === 'resigned' ? 'reinstate' : 'stay'), icon: 'refresh', scope, onClick: reinstate}
      : {label: t('offboard'), icon: 'out', scope, onClick: ask('offboard')},
  ];
  return (
    <>
      {user.locked && (
        <Button icon="unlock" scope="users:write" onClick={() => void unlock()}>
          {t('unlock')}
        </Button>
      )}
      <RecordMenu
        record={user}
        file={user.username}
        scope={scope}
        items={items.filter((item) => item !== false)}
        removal={{
          title: t('deleteTitle', {name}),
          text: (
            <>
              <p>{t('deleteText')}</p>
              <Effects user={user} ends={everything} />
            </>
          ),
          typed: user.username,
          record: user,
          send: () => call(deleteUser({path})),
          said: t('deletedDone', {name}),
          kinds: ['users'],
        }}
      />
      {dialog.value === 'lock' && <Lock user={user} close={close} after={after} />}
      {dialog.value === 'invite' && <Invite user={user} close={close} />}
      {dialog.value === 'reset' && <Reset user={user} close={close} after={after} />}
      {dialog.value === 'disable' && <Disable user={user} close={close} after={after} />}
      {dialog.value === 'offboard' && <Offboard user={user} close={close} after={after} />}
    </>
  );
}

function Lock({user, close, after}: ActionDialog) {
  const reason = useSignal('');
  const name = userName(user);
  return (
    <FormDialog
      title={t('lockTitle', {name})}
      yes={t('lock')}
      close={close}
      submit={() => call(lockUser({path: {id: user.id}, body: {reason: reason.value}}))}
      done={() => {
        toast(t('lockedDone', {name}), () =>
          undone(() => call(unlockUser({path: {id: user.id}})), ui('stayEnded')).then(after),
        );
        close();
        after();
      }}
    >
      {() => (
        <>
          <p class="muted">{t('lockText')}</p>
          <TextField
            label={t('reason')}
            value={reason.value}
            set={(v) => {
              reason.value = v;
            }}
          />
          <Effects user={user} ends={signedIn} />
        </>
      )}
    </FormDialog>
  );
}

function Invite({user, close}: Omit<ActionDialog, 'after'>) {
  const name = userName(user);
  return (
    <FormDialog
      title={t('inviteTitle', {name})}
      yes={t('inviteDo')}
      close={close}
      submit={(key) => call(inviteUser({path: {id: user.id}, body: {}, headers: {'Idempotency-Key': key}}))}
      done={({email}) => {
        toast(t('invited', {name, email: email ?? ''}));
        close();
      }}
    >
      {() => <p class="muted">{t('inviteText')}</p>}
    </FormDialog>
  );
}

function Reset({user, close, after}: ActionDialog) {
  const fresh = useSignal('');
  if (fresh.value) {
    return (
      <SecretDialog
        title={t('newPassword')}
        text={t('newPasswordText', {name: userName(user)})}
        values={[[t('password'), fresh.value]]}
        file={{name: `${user.username}.txt`, text: fresh.value + '\n'}}
        close={() => {
          close();
          after();
        }}
      />
    );
  }
  return (
    <FormDialog
      title={t('resetTitle', {name: userName(user)})}
      yes={t('resetDo')}
      danger
      close={close}
      submit={(key) => call(resetPassword({path: {id: user.id}, body: {}, headers: {'Idempotency-Key': key}}))}
      done={({password = ''}) => {
        fresh.value = password;
      }}
    >
      {() => (
        <>
          <p class="muted">{t('resetText')}</p>
          <Effects user={user} ends={['sessions']} />
        </>
      )}
    </FormDialog>
  );
}
