// A choice of a node: by name, or by going down its tree.
import {useSignal} from '@preact/signals';
import type {CoreObject, TreeNode} from '@idplatform/sdk';
import {useLoad} from '../../lib/load';
import {Failed} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {TextField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import type {Opened} from './forest';
import {Marked, hitsOf} from './index';
import {Marks, Tree} from './rows';
import {t} from './text';

export function NodePicker({
  object,
  chosen,
  choose,
  label,
  error,
  way,
}: {
  object: CoreObject;
  chosen: TreeNode | undefined;
  choose: (n: TreeNode) => void;
  label: string;
  error?: string;
  way?: string;
}) {
  const q = useSignal('');
  const opened = useSignal<Opened>({all: new Set(way ? [] : [object.root_node_id]), way: way ?? ''});
  const words = q.value.trim();
  const {state, again} = useLoad(words ? `${object.code} ${words}` : null, (signal) =>
    hitsOf(object.code, words, signal, 20),
  );
  return (
    <div class="tree-pick">
      <TextField
        label={label}
        error={error}
        placeholder={t('searchNodes')}
        value={q.value}
        set={(v) => {
          q.value = v;
        }}
      />
      {words ? (
        <div class="hits" aria-busy={state.value.busy}>
          {state.value.error && <Failed error={state.value.error} again={again} />}
          {state.value.value?.items.length === 0 && <p class="tree-note muted">{ui('nothingMatches')}</p>}
          <ul>
            {(state.value.value?.items ?? []).map((n) => (
              <li key={n.id}>
                <a
                  href="#"
                  role="button"
                  onClick={(e) => {
                    e.preventDefault();
                    q.value = '';
                    opened.value = {all: new Set(), way: n.id};
                    choose(n);
                  }}
                >
                  <Icon name="box" />
                  <span class="grow">
                    <span class="row">
                      <strong class="clip">
                        <Marked text={n.name} q={words} />
                      </strong>
                      <Marks node={n} />
                    </span>
                    <span class="faint clip" style={{display: 'block'}}>
                      {state.value.value!.names(n)}
                    </span>
                  </span>
                </a>
              </li>
            ))}
          </ul>
        </div>
      ) : (
        <Tree
          root={object.root_node_id}
          label={label}
          opened={opened.value}
          setOpened={(o) => {
            opened.value = o;
          }}
          current={chosen?.id}
          choose={choose}
        />
      )}
    </div>
  );
}
