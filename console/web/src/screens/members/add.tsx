// People are added to a node by search, or by a pasted list of names, addresses or numbers.
import {useSignal} from '@preact/signals';
import {useRef} from 'preact/hooks';
import {addTreeUsers, listUsers, removeTreeUsers, userExists, type TreeNode, type User} from '@idplatform/sdk';
import {asProblem, call, type ApiError} from '../../lib/api';
import {saveFile} from '../../lib/csv';
import {changed, useLoad} from '../../lib/load';
import {param, setQuery} from '../../lib/router';
import {Avatar, Button, Failed, Late} from '../../ui/basics';
import {Dialog, toast} from '../../ui/dialog';
import {valueOf} from '../../ui/live';
import {Faults, Field, TextField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {undone} from '../../ui/undo';
import {roles} from './columns';
import {t} from './text';

const batch = 1000; // what one call takes
const atOnce = 6;

export function AddMembers({node, close}: {node: TreeNode; close: () => void}) {
  const chosen = useSignal<Map<string, string>>(new Map()); // ids and names
  const ids = useRef<string[]>([]); // of the memberships that are made
  const role = useSignal(''),
    title = useSignal('');
  const busy = useSignal(false),
    error = useSignal<ApiError | undefined>(undefined);
  const paste = param('add') === 'list';
  const left = useRef(false);
  // Whoever leaves stops what is left to add, and can undo what was added.
  const leave = () => {
    left.current = true;
    close();
    if (!busy.value) offerUndo(ids.current);
  };
  const add = async () => {
    busy.value = true;
    error.value = undefined;
    try {
      while (chosen.value.size && !left.current) {
        const users = [...chosen.value].slice(0, batch);
        const items = users.map(([user_id]) => ({
          node_id: node.id,
          user_id,
          ...(role.value ? {role: valueOf(role.value, roles())} : {}),
          ...(title.value ? {title: title.value} : {}),
        }));
        ids.current.push(...(await call(addTreeUsers({body: {items}}))).items.map((m) => m.id));
        const done = new Set(users.map(([id]) => id)); // if a later batch fails, what is left can be sent again
        chosen.value = new Map([...chosen.value].filter(([id]) => !done.has(id)));
      }
    } catch (e) {
      error.value = asProblem(e);
    }
    busy.value = false;
    tell();
    if (left.current) offerUndo(ids.current);
    else if (!error.value) leave();
  };
  const n = chosen.value.size;
  return (
    <Dialog
      wide
      title={t('addTitle', {name: node.name})}
      onClose={leave}
      foot={
        <>
          <span class="start muted num" role="status">
            {t('chosen', {n})}
          </span>
          <Button onClick={leave}>{ui('cancel')}</Button>
          <Button kind="primary" disabled={n === 0} busy={busy.value} onClick={() => void add()}>
            {t('addDo')}
          </Button>
        </>
      }
    >
      <Faults error={error.value} />
      <div class="members-ways">
        {(['search', 'list'] as const).map((x) => (
          <button
            key={x}
            type="button"
            class={(x === 'list') === paste ? 'chip on' : 'chip'}
            aria-pressed={(x === 'list') === paste}
            onClick={() => void setQuery({add: x}, {replace: true})}
          >
            {t(x === 'list' ? 'byList' : 'bySearch')}
          </button>
        ))}
      </div>
      {paste ? <Pasted chosen={chosen} /> : <Found chosen={chosen} />}
      <div class="grid-2">
        <TextField
          label={t('role')}
          help={t('roleHelp')}
          placeholder={t('member')}
          value={role.value}
          set={(v) => {
            role.value = v;
          }}
        />
        <TextField
          label={t('title')}
          value={title.value}
          set={(v) => {
            title.value = v;
          }}
        />
      </div>
    </Dialog>
  );
}

function offerUndo(ids: string[]): void {
  if (ids.length === 0) return;
  toast(t('addedDone', {n: ids.length}), async () => {
    await undone(async () => {
      for (let i = 0; i < ids.length; i += batch) {
        await call(removeTreeUsers({body: {ids: ids.slice(i, i + batch)}}));
      }
    });
    tell();
  });
}

function tell(): void {
  changed('members');
  changed('nodes');
}

type Chosen = {value: Map<string, string>};

function toggle(chosen: Chosen, u: User): void {
  const next = new Map(chosen.value);
  if (!next.delete(u.id)) next.set(u.id, u.display_name || u.username);
  chosen.value = next;
}

function Found({chosen}: {chosen: Chosen}) {
  const q = useSignal('');
  const words = q.value.trim();
  const {state, again} = useLoad(`users ${words}`, (signal) =>
    call(
      listUsers({
        signal,
        query: {
          ...(words ? {keyword: words, search_type: 'generic' as const} : {page_sort: 'time_created[desc]'}),
          page_size: 50,
          count: 'false',
        },
      }),
    ),
  );
  const {value, error, busy} = state.value;
  return (
    <>
      <TextField
        label={t('searchUsers')}
        placeholder={t('search')}
        value={q.value}
        set={(v) => {
          q.value = v;
        }}
      />
      {error && <Failed error={error} again={again} />}
      <div class="candidates" aria-busy={busy}>
        <Late busy={busy && !value} lines={5}>
          {value?.items?.length === 0 && <p class="muted members-none">{ui('nothingMatches')}</p>}
          {(value?.items ?? []).map((u) => (
            <label key={u.id}>
              <input type="checkbox" checked={chosen.value.has(u.id)} onChange={() => toggle(chosen, u)} />
              <Avatar name={u.display_name || u.username} src={u.avatar_url} />
              <span class="grow">
                <span class="clip" style={{display: 'block'}}>
                  {u.display_name || u.username}
                </span>
                <span class="faint clip mono" style={{display: 'block'}}>
                  {u.username}
                </span>
              </span>
              <span class="faint clip only-wide">{u.email}</span>
            </label>
          ))}
        </Late>
      </div>
    </>
  );
}

/** Pasted finds the users of a list, of which each line is a username, e-mail address, employee number or id. */
function Pasted({chosen}: {chosen: Chosen}) {
  const text = useSignal(''),
    busy = useSignal(false),
    done = useSignal(0);
  const missing = useSignal<string[] | undefined>(undefined),
    error = useSignal<ApiError | undefined>(undefined);
  const lines = [
    ...new Set(
      text.value
        .split(/[\n,;\t]+/)
        .map((l) => l.trim())
        .filter(Boolean),
    ),
  ];
  const find = async () => {
    busy.value = true;
    error.value = undefined;
    done.value = 0;
    const next = new Map(chosen.value),
      none: string[] = [],
      queue = [...lines];
    const worker = async () => {
      for (let line = queue.shift(); line !== undefined; line = queue.shift()) {
        const id = await resolve(line);
        if (id) next.set(id, line);
        else none.push(line);
        done.value++;
      }
    };
    try {
      await Promise.all(Array.from({length: atOnce}, worker));
      chosen.value = next;
      missing.value = none;
    } catch (e) {
      error.value = asProblem(e);
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      <Field label={t('list')} help={t('listHelp')}>
        {(p) => (
          <textarea
            class="textarea mono"
            {...p}
            rows={8}
            spellcheck={false}
            value={text.value}
            onInput={(e) => {
              text.value = e.currentTarget.value;
              missing.value = undefined;
            }}
          />
        )}
      </Field>
      {error.value && <Failed error={error.value} again={() => void find()} />}
      <div class="row wrap">
        <Button disabled={!lines.length} busy={busy.value} onClick={() => void find()}>
          {t('find', {n: lines.length})}
        </Button>
        {busy.value && <progress value={done.value} max={lines.length} aria-label={t('list')} />}
        {missing.value && (
          <span role="status">{missing.value.length ? t('notFound', {n: missing.value.length}) : t('allFound')}</span>
        )}
        {!!missing.value?.length && (
          <Button
            small
            icon="download"
            onClick={() => saveFile('not-found.txt', 'text/plain', missing.value!.join('\n') + '\n')}
          >
            {t('asFile')}
          </Button>
        )}
      </div>
      {!!missing.value?.length && (
        <p class="mono faint">
          {missing.value.slice(0, 20).join(', ')}
          {missing.value.length > 20 ? ' …' : ''}
        </p>
      )}
    </>
  );
}

async function resolve(line: string): Promise<string | undefined> {
  const tries = line.includes('@')
    ? [{email: line}, {username: line}]
    : [{username: line}, {employee_number: line}, ...(/^\d+$/.test(line) ? [{id: line}] : [])];
  for (const body of tries) {
    const answer = await call(userExists({body}));
    if (answer.exists && answer.user_id) return answer.user_id;
  }
  return undefined;
}
