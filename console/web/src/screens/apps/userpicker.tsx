import {useSignal} from '@preact/signals';
import {listUsers, type User} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {Avatar, Button, Failed} from '../../ui/basics';
import type {InputProps} from '../../ui/record';
import {t} from './text';

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
      <div class="row apps-picked">
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
        <ul class={`apps-picks ${busy ? 'apps-dim' : ''}`}>
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
