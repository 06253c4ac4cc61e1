import {useSignal} from '@preact/signals';
import {createComponent, type ComponentInputWritable} from '@idplatform/sdk';
import {call, type ApiError} from '../../lib/api';
import {changed} from '../../lib/load';
import {setQuery} from '../../lib/router';
import {toast} from '../../ui/dialog';
import {JsonField} from '../../ui/jsonfield';
import {Field, FormDialog, faultOf} from '../../ui/record';
import {ConfigFields} from './config';
import {t} from './text';

interface Draft {
  code: string;
  name: string;
  type: string;
  schema: unknown;
  config: unknown;
}

const first: Draft = {
  code: '',
  name: '',
  type: '',
  schema: {type: 'object', properties: {title: {type: 'string', title: 'Title', maxLength: 80}}},
  config: {},
};

export function Create({close}: {close: () => void}) {
  const body = useSignal(first);
  const put = (members: Partial<Draft>) => {
    body.value = {...body.value, ...members};
  };
  const send = (key: string) =>
    call(createComponent({body: body.value as ComponentInputWritable, headers: {'Idempotency-Key': key}}));
  const field = (error: ApiError | undefined, name: 'name' | 'code' | 'type', label: string, help?: string) => (
    <Field label={label} help={help} error={faultOf(error, name)} wide={name === 'type'}>
      {(p) => (
        <input
          class={name === 'name' ? 'input' : 'input mono'}
          {...p}
          required
          autocomplete="off"
          spellcheck={false}
          value={body.value[name]}
          onInput={(e) => put({[name]: e.currentTarget.value})}
        />
      )}
    </Field>
  );
  return (
    <FormDialog
      wide
      title={t('create')}
      yes={t('createDo')}
      submit={send}
      close={close}
      done={async (made) => {
        changed('components');
        toast(t('createdDone', {name: made.name}));
        await setQuery({create: null, open: made.id}, {replace: true, force: true});
      }}
    >
      {(error) => (
        <>
          <div class="grid-2">
            {field(error, 'name', t('name'))}
            {field(error, 'code', t('code'), t('codeHelp'))}
            {field(error, 'type', t('type'), t('typeHelp'))}
          </div>
          <JsonField
            label={t('schema')}
            help={t('schemaHelp')}
            most={12}
            value={body.value.schema}
            set={(schema) => put({schema})}
            error={faultOf(error, 'schema')}
          />
          <section class="section">
            <h3>{t('config')}</h3>
            <ConfigFields
              schema={body.value.schema}
              value={body.value.config}
              set={(config) => put({config})}
              error={error}
              fault={faultOf(error, 'config')}
            />
          </section>
        </>
      )}
    </FormDialog>
  );
}
