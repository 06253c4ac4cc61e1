// A new function: its code as text, or a WebAssembly module as a file.
import {useSignal} from '@preact/signals';
import {createFunction, putFunctionModule, type Function as Fn, type FunctionInputWritable} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {changed} from '../../lib/load';
import {toast} from '../../ui/dialog';
import {Field, FormDialog, faultOf, TextField, SelectField} from '../../ui/record';
import {codeOf} from '../jobs/form';
import {SourceField} from './editor';
import {t} from './text';

const template = `// Called with the input of the caller, or the event that triggers it.
function main(input, context) {
  console.log('called with', input);
  return {hello: input};
}
`;

type Runtime = Fn['runtime'];

export function Create({close}: {close: (made?: Fn) => void}) {
  const f = useSignal({name: '', code: '', runtime: 'javascript' as Runtime, source: template});
  const module = useSignal<File | undefined>(undefined);
  const ownCode = useSignal(false);
  const set = (values: Partial<typeof f.value>) => {
    f.value = {...f.value, ...values};
  };
  const {name, code, runtime, source} = f.value;
  const body: FunctionInputWritable = {name: name.trim(), code, runtime, ...(runtime === 'javascript' && {source})};
  return (
    <FormDialog
      wide
      title={t('create')}
      yes={t('createDo')}
      submit={(key) => call(createFunction({body, headers: {'Idempotency-Key': key}}))}
      done={async (made) => {
        changed('functions');
        if (runtime === 'wasm' && module.value) await upload(made, module.value);
        else toast(t('createdDone', {name: made.name}));
        close(made);
      }}
      close={() => close()}
    >
      {(error) => (
        <>
          <div class="grid-2">
            <TextField
              label={t('name')}
              error={faultOf(error, 'name')}
              required
              value={name}
              set={(v) => {
                const value = v;
                set({name: value, ...(!ownCode.value && {code: codeOf(value)})});
              }}
            />
            <TextField
              label={t('code')}
              help={t('codeHelp')}
              error={faultOf(error, 'code')}
              required
              mono
              value={code}
              set={(v) => {
                ownCode.value = v !== '';
                set({code: v});
              }}
            />
            <SelectField
              label={t('runtime')}
              error={faultOf(error, 'runtime')}
              help={t(runtime === 'wasm' ? 'wasmHelp' : 'jsHelp')}
              wide
              value={runtime}
              set={(v) => set({runtime: v as Runtime})}
            >
              <option value="javascript">{t('javascript')}</option>
              <option value="wasm">{t('wasm')}</option>
            </SelectField>
          </div>
          {runtime === 'javascript' ? (
            <SourceField value={source} set={(v) => set({source: v})} error={error} />
          ) : (
            <Field label={t('module')} help={t('moduleHelp')}>
              {(p) => (
                <input
                  class="input"
                  type="file"
                  accept=".wasm,application/wasm"
                  {...p}
                  onChange={(e) => {
                    module.value = e.currentTarget.files?.[0];
                  }}
                />
              )}
            </Field>
          )}
        </>
      )}
    </FormDialog>
  );
}

/** upload gives a function its module. A module that is refused leaves the function as it was. */
export async function upload(f: Fn, file: File): Promise<void> {
  try {
    const made = await call(putFunctionModule({path: {id: f.id}, body: file, headers: {'If-Match': `"${f.version}"`}}));
    toast(t('uploaded', {name: f.name, n: made.revision}));
  } catch (e) {
    toast(`${t('uploadFailed')}: ${asProblem(e).message}`);
  }
  changed('functions');
}
