import {useSignal} from '@preact/signals';
import {createTreeNode, deleteTreeNode, getTreeNode, type CoreObject, type TreeNode} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changed, useLoad} from '../../lib/load';
import {toast} from '../../ui/dialog';
import {Field, FormDialog, faultOf, SelectField} from '../../ui/record';
import {undone} from '../../ui/undo';
import {NodePicker} from './picker';
import {t} from './text';

type Kind = 'plain' | 'dynamic' | 'pointer';

/** CreateNode makes a node below another one; a pointer or a dynamic node, too. */
export function CreateNode({
  object,
  parent,
  close,
}: {
  object: CoreObject;
  parent: string;
  close: (id?: string) => void;
}) {
  const above = useLoad(parent, (signal) => call(getTreeNode({path: {id: parent}, signal})));
  const body = useSignal({name: '', code: '', description: '', condition: ''});
  const kind = useSignal<Kind>('plain'),
    target = useSignal<TreeNode | undefined>(undefined);
  const send = (key: string) => {
    const {condition, code, ...rest} = body.value;
    return call(
      createTreeNode({
        headers: {'Idempotency-Key': key},
        body: {
          object_code: object.code,
          parent_id: parent,
          ...rest,
          ...(code ? {code} : {}),
          ...(kind.value === 'dynamic' ? {is_dynamic: '1' as const, condition} : {}),
          ...(kind.value === 'pointer' ? {is_pointer: '1' as const, pointer_id: target.value?.id ?? ''} : {}),
        },
      }),
    );
  };
  const done = (node: TreeNode) => {
    const after = () => {
      changed('nodes');
      changed('objects');
    };
    const back = () =>
      call(
        deleteTreeNode({
          path: {id: node.id},
          query: {object_code: node.object_code},
          headers: {'If-Match': `"${node.version}"`},
        }),
      );
    after();
    toast(t('createdDone', {name: node.name}), () => undone(back).then(after));
    close(node.id);
  };
  return (
    <FormDialog title={t('createTitle')} yes={t('createDo')} submit={send} done={done} close={() => close()}>
      {(error) => {
        const field = (name: 'name' | 'code' | 'description' | 'condition', label: string, help?: string) => (
          <Field
            label={label}
            help={help}
            error={faultOf(error, name)}
            wide={name === 'description' || name === 'condition'}
          >
            {(props) =>
              name === 'condition' ? (
                <textarea
                  class="textarea mono"
                  {...props}
                  spellcheck={false}
                  value={body.value[name]}
                  onInput={(e) => {
                    body.value = {...body.value, [name]: e.currentTarget.value};
                  }}
                />
              ) : (
                <input
                  class="input"
                  {...props}
                  autocomplete="off"
                  spellcheck={false}
                  value={body.value[name]}
                  onInput={(e) => {
                    body.value = {...body.value, [name]: e.currentTarget.value};
                  }}
                />
              )
            }
          </Field>
        );
        return (
          <>
            <p class="muted">{t('below', {name: above.state.value.value?.name ?? '…'})}</p>
            <div class="grid-2">
              {field('name', t('name'))}
              {field('code', t('code'), t('codeHelp'))}
              <SelectField
                label={t('kind')}
                wide
                help={t(`${kind.value}Help`)}
                value={kind.value}
                set={(v) => {
                  kind.value = v as Kind;
                }}
              >
                <option value="plain">{t('plain')}</option>
                <option value="dynamic">{t('dynamicLong')}</option>
                <option value="pointer">{t('pointerLong')}</option>
              </SelectField>
              {kind.value === 'dynamic' && field('condition', t('condition'), t('conditionHelp'))}
              {kind.value === 'pointer' && (
                <div class="wide">
                  <NodePicker
                    object={object}
                    chosen={target.value}
                    choose={(n) => {
                      target.value = n;
                    }}
                    label={t('target')}
                    error={faultOf(error, 'pointer_id')}
                  />
                </div>
              )}
              {field('description', t('description'))}
            </div>
          </>
        );
      }}
    </FormDialog>
  );
}
