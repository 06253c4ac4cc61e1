// The sub-accounts of an application: who has which account in it.
import {useSignal} from '@preact/signals';
import {
  createAccount,
  deleteAccount,
  disableAccount,
  disableMultiAccounts,
  enableAccount,
  enableMultiAccounts,
  getAccount,
  listAccounts,
  listAccountsOfUser,
  replaceAccount,
  type Account,
  type Application,
} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {number} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {nameOf} from '../../lib/names';
import {param, setQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Blank, Button, Failed, Late, Status, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {RecordName} from '../../ui/origin';
import {Field, FormDialog, RecordMenu, faultOf, type Removal, TextField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {carryOut, undone} from '../../ui/undo';
import {UserPicker} from '../../ui/userpicker';
import {t} from './text';

const scope = 'applications:write',
  pageSize = 50;

export function AccountsTab({app, reload}: {app: Application; reload: () => void}) {
  const q = param('aq'),
    page = Number(param('ap')) || 1;
  const {state, again} = useLoad(`accounts ${app.id} ${q} ${page}`, (signal) =>
    call(
      listAccounts({path: {id: app.id}, query: {keyword: q || undefined, page_size: pageSize, page_num: page}, signal}),
    ),
  );
  const edited = useSignal<Account | 'new' | undefined>(undefined);
  const {value, error, busy} = state.value;
  const items = value?.items ?? [];
  const add = (
    <Button
      icon="plus"
      scope={scope}
      onClick={() => {
        edited.value = 'new';
      }}
    >
      {t('addAccount')}
    </Button>
  );
  const several = app.multi_account_enabled === '1';
  const allow = (to: boolean) => call((to ? enableMultiAccounts : disableMultiAccounts)({path: {id: app.id}}));
  const pages = Math.max(1, Math.ceil((value?.total ?? 0) / pageSize));
  return (
    <>
      <div class="row wrap">
        <label class="search grow">
          <span class="visually-hidden">{t('accountSearch')}</span>
          <Icon name="search" />
          <input
            class="input"
            type="search"
            placeholder={t('accountSearch')}
            value={q}
            onInput={(e) => void setQuery({aq: e.currentTarget.value, ap: null}, {replace: true, force: true})}
          />
        </label>
        {add}
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={several}
          disabled={!may(scope)}
          onChange={() =>
            void carryOut({
              send: () => allow(!several),
              back: () => allow(several),
              said: t('savedDone', {name: app.name}),
              after: reload,
            })
          }
        />
        {t('several')}
      </label>
      {error ? (
        <Failed error={error} again={again} />
      ) : (
        <Late busy={busy && !value} lines={6}>
          {value &&
            !items.length &&
            (q ? (
              <Blank
                icon="search"
                title={ui('nothingMatches')}
                action={
                  <Button onClick={() => void setQuery({aq: null, ap: null}, {replace: true})}>
                    {ui('clearSearch')}
                  </Button>
                }
              />
            ) : (
              <Blank icon="member" title={t('noAccounts')} action={add}>
                {t('noAccountsText')}
              </Blank>
            ))}
          {value && items.length > 0 && (
            <table class={`plain ${busy ? 'apps-dim' : ''}`}>
              <thead>
                <tr>
                  <th scope="col">{t('account')}</th>
                  <th scope="col">{t('user')}</th>
                  <th scope="col">{t('status')}</th>
                  <th>
                    <span class="visually-hidden">{ui('more')}</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {items.map((a) => (
                  <Row
                    key={a.id}
                    a={a}
                    again={again}
                    edit={() => {
                      edited.value = a;
                    }}
                  />
                ))}
              </tbody>
            </table>
          )}
          {value && !!value.total && (
            <div class="row spread muted">
              <span class="num">{ui('showing', {n: value.total})}</span>
              {pages > 1 && (
                <span class="row">
                  <Button
                    small
                    kind="ghost"
                    icon="left"
                    label={t('previous')}
                    disabled={page <= 1}
                    onClick={() => void setQuery({ap: page - 1})}
                  />
                  <span class="num">
                    {number(page)} / {number(pages)}
                  </span>
                  <Button
                    small
                    kind="ghost"
                    icon="right"
                    label={ui('next')}
                    disabled={page >= pages}
                    onClick={() => void setQuery({ap: page + 1})}
                  />
                </span>
              )}
            </div>
          )}
        </Late>
      )}
      {edited.value && (
        <Edit
          app={app}
          account={edited.value === 'new' ? undefined : edited.value}
          again={again}
          close={() => {
            edited.value = undefined;
            again();
          }}
        />
      )}
    </>
  );
}

function Row({a, again, edit}: {a: Account; again: () => void; edit: () => void}) {
  const path = {app_id: a.app_id, id: a.id},
    on = a.status === '1';
  const flip = (to: boolean) => (to ? call(enableAccount({path, query: {id: a.id}})) : call(disableAccount({path})));
  const toggle = () =>
    carryOut({
      send: () => flip(!on),
      back: () => flip(on),
      said: t(on ? 'disabledDone' : 'enabledDone', {name: a.account}),
      after: again,
    });
  const removal: Removal = {
    title: t('deleteTitle', {name: a.account}),
    text: t('deleteAccountText'),
    typed: a.account,
    record: a,
    send: () => call(deleteAccount({path})),
    said: t('deletedDone', {name: a.account}),
    kinds: [],
    leave: async () => again(),
  };
  return (
    <tr>
      <td>
        <div class="clip">
          {a.display_name || a.account} {a.is_default === '1' && <Tag>{t('default')}</Tag>}
        </div>
        {a.display_name && <div class="faint mono clip">{a.account}</div>}
      </td>
      <td>
        <RecordName kind="user" id={a.user_id} />
      </td>
      <td>
        <Status tone={on ? 'good' : 'off'}>{t(on ? 'enabled' : 'disabled')}</Status>
      </td>
      <td class="end">
        <RecordMenu
          small
          record={a}
          file={a.account}
          scope={scope}
          items={[
            {label: `${ui('edit')}…`, icon: 'edit', scope, onClick: edit},
            {label: t(on ? 'disable' : 'enable'), icon: on ? 'pause' : 'play', scope, onClick: () => void toggle()},
          ]}
          removal={removal}
        />
      </td>
    </tr>
  );
}

interface Form {
  user_id: string;
  account: string;
  display_name: string;
  password: string;
  is_default: '1' | '0';
}

function Edit({
  app,
  account,
  again,
  close,
}: {
  app: Application;
  account?: Account;
  again: () => void;
  close: () => void;
}) {
  const first: Form = {
    user_id: account?.user_id ?? '',
    account: account?.account ?? '',
    display_name: account?.display_name ?? '',
    password: '',
    is_default: account?.is_default ?? '0',
  };
  const form = useSignal(first);
  const set = (v: Partial<Form>) => {
    form.value = {...form.value, ...v};
  };
  const same = JSON.stringify(form.value) === JSON.stringify(first);
  const submit = (key: string) => (account ? replace(account, form.value, again) : create(app, form.value, key, again));
  const title = account ? t('editAccount', {name: account.account}) : t('addAccount');
  return (
    <FormDialog
      title={title}
      yes={account ? ui('save') : t('createDo')}
      disabled={!form.value.user_id || !form.value.account.trim() || same}
      submit={submit}
      done={close}
      close={close}
    >
      {(error) => {
        const text = (name: 'account' | 'display_name' | 'password', label: string, help?: string) => (
          <TextField
            label={label}
            help={help}
            error={faultOf(error, name)}
            type={(name === 'password' ? name : 'text') as 'text'}
            autocomplete={name === 'password' ? 'new-password' : 'off'}
            value={form.value[name]}
            set={(v) => set({[name]: v})}
          />
        );
        return (
          <>
            <Field label={`${t('user')} *`} error={faultOf(error, 'user_id')}>
              {(p) =>
                account ? (
                  <input class="input" {...p} readOnly value={nameOf('user', account.user_id) || account.user_id} />
                ) : (
                  <UserPicker
                    props={p}
                    choose={(u) => set({user_id: u?.id ?? '', account: form.value.account || (u?.username ?? '')})}
                  />
                )
              }
            </Field>
            {text('account', `${t('account')} *`, t('accountHelp'))}
            {text('display_name', t('displayName'))}
            {text('password', t('password'), t(account ? 'passwordKeep' : 'passwordHelp'))}
            <label class="check">
              <input
                type="checkbox"
                checked={form.value.is_default === '1'}
                disabled={first.is_default === '1'}
                onChange={(e) => set({is_default: e.currentTarget.checked ? '1' : '0'})}
              />
              {t('defaultText')}
            </label>
          </>
        );
      }}
    </FormDialog>
  );
}

async function create(app: Application, {password, ...rest}: Form, key: string, again: () => void): Promise<void> {
  const body = {...rest, ...(password && {password}), display_name: rest.display_name || undefined};
  const made = await call(createAccount({path: {id: app.id}, body, headers: {'Idempotency-Key': key}}));
  const path = {app_id: app.id, id: made.id};
  toast(t('createdDone', {name: made.account}), () => undone(() => call(deleteAccount({path}))).then(again));
}

// replace writes all of the record, since PUT loses what is not given. A new password has no undo. Another account is
// the person's default no longer, if this one becomes it.
async function replace(was: Account, {password, ...rest}: Form, again: () => void): Promise<void> {
  const others = rest.is_default === was.is_default ? [] : await accountsOf(was.user_id);
  const former = others.find((a) => a.app_id === was.app_id && a.is_default === '1');
  await put(was, was.version, {...rest, password});
  const {account, display_name} = was;
  const back = async () => {
    await put(was, was.version + 1, {account, display_name});
    if (!former) return;
    const now = await call(getAccount({path: {app_id: former.app_id, id: former.id}}));
    await put(now, now.version, {is_default: '1'});
  };
  toast(t('savedDone', {name: rest.account}), password ? undefined : () => undone(back).then(again));
}

const accountsOf = (user_id: string) =>
  call(listAccountsOfUser({query: {user_id, page_size: 200}})).then((page) => page.items ?? []);

const put = (a: Account, version: number, {password, ...values}: Partial<Form>) =>
  call(
    replaceAccount({
      path: {app_id: a.app_id, id: a.id},
      headers: {'If-Match': `"${version}"`},
      body: {
        user_id: a.user_id,
        account: a.account,
        display_name: a.display_name,
        free_ext_props: a.free_ext_props,
        sys_ext_props: a.sys_ext_props,
        password: password || a.password || undefined,
        ...values,
      },
    }),
  );
