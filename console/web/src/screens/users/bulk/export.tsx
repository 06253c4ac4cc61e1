import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {asProblem, type ApiError} from '../../../lib/api';
import {savePieces} from '../../../lib/csv';
import {Button, Failed} from '../../../ui/basics';
import {Dialog, toast} from '../../../ui/dialog';
import type {Query} from '../../../ui/list';
import {SelectField} from '../../../ui/record';
import {t as ui} from '../../../ui/text';
import {streamUsers} from './collect';
import {t} from './text';

/** ExportDialog streams the users of a list into a file. */
export function ExportDialog({query, close}: {query: Query; close: () => void}) {
  const format = useSignal<'csv' | 'ndjson'>('csv');
  const count = useSignal<number | undefined>(undefined); // lines that have come
  const error = useSignal<ApiError | undefined>(undefined);
  const abort = useRef<AbortController | undefined>(undefined);
  const users = () => Math.max(0, count.value! - (format.value === 'csv' ? 1 : 0)); // without the headings
  useEffect(() => () => abort.current?.abort(), []);
  const run = async () => {
    const controller = (abort.current = new AbortController());
    const pieces: string[] = [];
    const csv = format.value === 'csv';
    error.value = undefined;
    count.value = 0;
    try {
      await streamUsers(query, format.value, controller.signal, (text) => {
        pieces.push(text);
        count.value = count.value! + text.split('\n').length - 1;
      });
      savePieces(
        `users-${new Date().toISOString().slice(0, 10)}.${csv ? 'csv' : 'jsonl'}`,
        csv ? 'text/csv' : 'application/x-ndjson',
        pieces,
      );
      toast(t('exported', {n: users()}));
      close();
    } catch (e) {
      count.value = undefined;
      if (!controller.signal.aborted) error.value = asProblem(e);
    }
  };
  return (
    <Dialog
      title={t('exportTitle')}
      onClose={close}
      foot={
        <>
          <Button onClick={close}>{ui('cancel')}</Button>
          <Button kind="primary" icon="download" busy={count.value !== undefined} onClick={() => void run()}>
            {t('exportDo')}
          </Button>
        </>
      }
    >
      <p class="muted">{t('exportText')}</p>
      <SelectField
        label={t('format')}
        value={format.value}
        set={(v) => {
          format.value = v as 'csv';
        }}
      >
        <option value="csv">{t('csv')}</option>
        <option value="ndjson">{t('jsonl')}</option>
      </SelectField>
      {count.value !== undefined && (
        <p class="muted num" role="status">
          {t('exported', {n: users()})}
        </p>
      )}
      {error.value && <Failed error={error.value} again={() => void run()} />}
    </Dialog>
  );
}
