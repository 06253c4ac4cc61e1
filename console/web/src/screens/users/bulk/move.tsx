import type {Signal} from '@preact/signals';
import {useSignal} from '@preact/signals';
import {listCoreObjects, type TreeNode} from '@idplatform/sdk';
import {call} from '../../../lib/api';
import {useLoad} from '../../../lib/load';
import {Button, Failed, Late} from '../../../ui/basics';
import {SelectField} from '../../../ui/record';
import {NodePicker} from '../../tree/picker';
import type {Details} from './actions';
import {t} from './text';

/** MoveFields asks for a tree, the node that people leave, and the node that they join. */
export function MoveFields({details}: {details: Signal<Details>}) {
  const {state, again} = useLoad('trees', (signal) => call(listCoreObjects({signal})));
  const from = useSignal<TreeNode | undefined>(undefined),
    to = useSignal<TreeNode | undefined>(undefined);
  const {value, error, busy} = state.value;
  const object = value?.find((o) => o.code === details.value.tree) ?? value?.[0];
  const set = (v: Partial<Details>) => {
    details.value = {...details.value, tree: object?.code ?? '', ...v};
  };
  if (error) return <Failed error={error} again={again} />;
  return (
    <Late busy={busy && !value} lines={6}>
      {object && (
        <>
          <SelectField
            label={t('tree')}
            value={object.code}
            set={(v) => {
              from.value = to.value = undefined;
              set({tree: v, from: '', to: ''});
            }}
          >
            {value!.map((o) => (
              <option key={o.id} value={o.code}>
                {o.name}
              </option>
            ))}
          </SelectField>
          <div class="grid-2" key={object.code}>
            <div class="stack">
              <NodePicker
                object={object}
                chosen={from.value}
                label={t('from')}
                choose={(n) => {
                  from.value = n;
                  set({from: n.id});
                }}
              />
              <span class="row muted">
                {from.value ? <strong class="clip">{from.value.name}</strong> : t('fromHelp')}
                {from.value && (
                  <Button
                    small
                    kind="ghost"
                    icon="x"
                    label={t('clear')}
                    onClick={() => {
                      from.value = undefined;
                      set({from: ''});
                    }}
                  />
                )}
              </span>
            </div>
            <div class="stack">
              <NodePicker
                object={object}
                chosen={to.value}
                label={t('to')}
                choose={(n) => {
                  to.value = n;
                  set({to: n.id});
                }}
              />
              {to.value && <strong class="clip">{to.value.name}</strong>}
            </div>
          </div>
        </>
      )}
    </Late>
  );
}
