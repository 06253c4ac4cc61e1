// Import of a CSV file: map its columns, try the first lines, then import in batches that can be stopped and resumed.
import {useSignal} from '@preact/signals';
import {parseCsv} from '../../../lib/csv';
import {Dialog} from '../../../ui/dialog';
import type {Table} from './columns';
import {Mapped} from './mapped';
import {t} from './text';

export function ImportDialog({close}: {close: () => void}) {
  const file = useSignal<Table | null>(null);
  return (
    <Dialog wide title={t('title')} onClose={close}>
      {file.value ? (
        <Mapped
          file={file.value}
          close={close}
          other={() => {
            file.value = null;
          }}
        />
      ) : (
        <Choose
          chosen={(f) => {
            file.value = f;
          }}
        />
      )}
    </Dialog>
  );
}

function Choose({chosen}: {chosen: (f: Table) => void}) {
  const over = useSignal(false),
    fault = useSignal('');
  const read = async (f: File | undefined) => {
    if (!f) return;
    const [headings, ...rows] = parseCsv(await f.text());
    if (!headings || !rows.length) fault.value = t('noRows');
    else chosen({name: f.name, headings, rows});
  };
  return (
    <label
      class="users-drop"
      data-over={over.value}
      onDragOver={(e) => {
        e.preventDefault();
        over.value = true;
      }}
      onDragLeave={() => {
        over.value = false;
      }}
      onDrop={(e) => {
        e.preventDefault();
        over.value = false;
        void read(e.dataTransfer?.files[0]);
      }}
    >
      <input
        type="file"
        class="visually-hidden"
        accept=".csv,.tsv,.txt,text/csv"
        onChange={(e) => void read(e.currentTarget.files?.[0])}
      />
      <strong>{t('choose')}</strong>
      <span class="muted">{t('drop')}</span>
      {fault.value && (
        <span class="error" role="alert">
          {fault.value}
        </span>
      )}
    </label>
  );
}
