// A new object: JSON, a text, or a file.
import {useSignal} from '@preact/signals';
import {createKvObject, type KvBucket} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changed} from '../../lib/load';
import {param, setQuery} from '../../lib/router';
import {toast} from '../../ui/dialog';
import {NotJson} from '../../lib/notjson';
import {FormDialog, faultOf, TextField} from '../../ui/record';
import {ValueEditor} from './editor';
import {ExpiryField, ttlOf, type Expiry} from './expiry';
import {t} from './text';
import {sizeOf, type Kind} from './value';

const types: Record<Kind, string> = {
  json: 'application/json',
  text: 'text/plain; charset=utf-8',
  binary: 'application/octet-stream',
};

export function Create({bucket, close}: {bucket: KvBucket; close: () => void}) {
  const key = useSignal(param('q'));
  const kind = useSignal<Kind>('json');
  const value = useSignal<unknown>({});
  const contentType = useSignal(types.json);
  const expiry = useSignal<Expiry>('bucket');
  const off =
    !key.value ||
    value.value instanceof NotJson ||
    (kind.value === 'binary' && !value.value) ||
    sizeOf(value.value) > bucket.max_object_bytes;
  const send = (once: string) =>
    call(
      createKvObject({
        path: {bucket: bucket.name},
        body: {
          key: key.value,
          value: value.value,
          content_type: contentType.value,
          ttl_seconds: ttlOf(expiry.value, null),
        },
        headers: {'Idempotency-Key': once},
      }),
    );
  const choose = (to: Kind) => {
    if (to === kind.value) return;
    kind.value = to;
    value.value = to === 'json' ? {} : '';
    contentType.value = types[to];
  };
  return (
    <FormDialog
      wide
      title={t('newObject')}
      yes={t('create')}
      disabled={off}
      submit={send}
      close={close}
      done={async (made) => {
        changed('kv-objects');
        toast(t('createdDone', {name: made.key}));
        await setQuery({create: null, open: made.key}, {replace: true, force: true});
      }}
    >
      {(error) => (
        <>
          <TextField
            label={t('key')}
            help={t('keyHelp')}
            error={faultOf(error, 'key')}
            required
            mono
            value={key.value}
            set={(v) => {
              key.value = v;
            }}
          />
          <ValueEditor
            any
            name={key.value}
            value={value.value}
            contentType={contentType.value}
            kind={kind.value}
            choose={choose}
            set={(v, type) => {
              value.value = v;
              if (type) contentType.value = type;
            }}
            max={bucket.max_object_bytes}
            error={faultOf(error, 'value')}
          />
          <div class="grid-2">
            <TextField
              label={t('contentType')}
              help={t('contentTypeHelp')}
              error={faultOf(error, 'content_type')}
              value={contentType.value}
              set={(v) => {
                contentType.value = v;
              }}
            />
            <ExpiryField
              expiry={expiry.value}
              set={(v) => {
                expiry.value = v;
              }}
              bucketTtl={bucket.ttl_seconds}
              error={faultOf(error, 'ttl_seconds')}
            />
          </div>
        </>
      )}
    </FormDialog>
  );
}
