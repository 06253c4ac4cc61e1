// A field in which a user is found.
import {useSignal} from '@preact/signals';
import {listUsers, type User} from '@idplatform/sdk';
import {call} from '../lib/api';
import {texts} from '../lib/i18n';
import {useLoad} from '../lib/load';
import {Avatar, Button, Failed} from './basics';
import type {InputProps} from './record';

const t = texts({
  otherUser: ['Choose another user', '选择其他用户'],
  userSearch: ['Name, username or e-mail…', '姓名、用户名或邮箱…'],
  noUser: ['Nobody found', '未找到人员'],
});

/** UserPicker finds a user while one types. */
export function UserPicker({props, choose}: {props: InputProps; choose: (user: User | undefined) => void}) {
  const q = useSignal('');
  const chosen = useSignal<User | undefined>(undefined);
  const words = q.value.trim();
  const {state} = useLoad(words ? `pick ${words}` : null, (signal) =>
    call(listUsers({query: {keyword: words, search_type: 'generic', page_size: 6, count: 'false'}, signal})),
  );
  const take = (u: User | undefined) => {
    chosen.value = u;
    choose(u);
  };
  if (chosen.value) {
    const u = chosen.value;
    return (
      <div class="row user-picked">
        <Avatar name={u.display_name || u.username} src={u.avatar_url} />
        <span class="grow clip">
          {u.display_name || u.username} <span class="faint mono">{u.username}</span>
        </span>
        <Button small kind="ghost" icon="x" label={t('otherUser')} onClick={() => take(undefined)} />
      </div>
    );
  }
  const {value, error, busy} = state.value;
  return (
    <div class="stack picker">
      <input
        class="input"
        type="search"
        {...props}
        autocomplete="off"
        placeholder={t('userSearch')}
        value={q.value}
        onInput={(e) => {
          q.value = e.currentTarget.value;
        }}
      />
      {error && <Failed error={error} />}
      {words && value && (
        <ul class={busy ? 'user-picks dim' : 'user-picks'}>
          {(value.items ?? []).map((u) => (
            <li key={u.id}>
              <button type="button" onClick={() => take(u)}>
                <Avatar name={u.display_name || u.username} src={u.avatar_url} />
                <span class="grow clip">{u.display_name || u.username}</span>
                <span class="faint mono clip">{u.username}</span>
              </button>
            </li>
          ))}
          {!value.items?.length && <li class="faint none">{t('noUser')}</li>}
        </ul>
      )}
    </div>
  );
}
