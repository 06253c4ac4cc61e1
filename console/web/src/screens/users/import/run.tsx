import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {asProblem, type ApiError} from '../../../lib/api';
import {saveFile, toCsv} from '../../../lib/csv';
import {number} from '../../../lib/format';
import {changed} from '../../../lib/load';
import {importLines, type LineResult} from '../../../lib/ndjson';
import {Button, Failed} from '../../../ui/basics';
import {t as ui} from '../../../ui/text';
import type {Table} from './columns';
import {forgetKeys, keysFor} from './keys';
import {Results, Summary, reason} from './results';
import {t} from './text';

const batch = 500; // lines

/** Run sends batch after batch, until it is closed. Each has a key, so a repeated batch is carried out once. */
export function Run({
  file,
  records,
  conflict,
  close,
}: {
  file: Table;
  records: Record<string, string>[];
  conflict: 'fail' | 'skip' | 'update';
  close: () => void;
}) {
  const results = useSignal<LineResult[]>([]);
  const going = useSignal(false),
    error = useSignal<ApiError | undefined>(undefined);
  const keys = useSignal<string[]>([]);
  const spent = useSignal(0);
  const running = useRef(false);
  const go = async () => {
    going.value = true;
    if (running.current) return; // a loop whose batch was not answered yet when it was paused goes on
    running.current = true;
    error.value = undefined;
    try {
      if (!keys.value.length) keys.value = await keysFor(records, conflict, Math.ceil(records.length / batch));
      while (going.value && results.value.length < records.length) {
        const from = results.value.length,
          begun = performance.now();
        const part = await importLines(records.slice(from, from + batch), {conflict, key: keys.value[from / batch]});
        spent.value += performance.now() - begun;
        results.value = [...results.value, ...part.map((r) => ({...r, line: r.line + from}))];
      }
      if (results.value.length >= records.length) forgetKeys();
    } catch (e) {
      error.value = asProblem(e);
    } finally {
      running.current = going.value = false;
      changed('users');
    }
  };
  const started = useSignal(false);
  if (!started.value) {
    started.value = true;
    void go();
  }
  useEffect(
    () => () => {
      going.value = false;
    },
    [],
  );
  const n = results.value.length,
    all = n >= records.length;
  const failed = results.value.filter((r) => r.status === 'failed');
  return (
    <>
      <progress class="users-progress" value={n} max={records.length} aria-label={t('title')} />
      <div class="row spread">
        <span class="num">
          {number(n)} / {number(records.length)}
        </span>
        {spent.value > 0 && <span class="muted num">{t('rate', {n: Math.round((n / spent.value) * 1000)})}</span>}
      </div>
      {error.value && <Failed error={error.value} again={() => void go()} />}
      <Summary results={results.value} />
      {failed.length > 0 && <Results results={failed.slice(0, 50)} records={records} />}
      <div class="row" style={{justifyContent: 'flex-end'}}>
        {failed.length > 0 && (
          <Button
            icon="download"
            onClick={() =>
              saveFile(
                file.name.replace(/(\.\w+)?$/, '.failed.csv'),
                'text/csv',
                toCsv([
                  [...file.headings, t('reason')],
                  ...failed.map((r) => [...(file.rows[r.line - 1] ?? []), reason(r)]),
                ]),
              )
            }
          >
            {t('failures')}
          </Button>
        )}
        {all ? (
          <Button kind="primary" onClick={close}>
            {ui('done')}
          </Button>
        ) : (
          <Button busy={false} onClick={() => (going.value ? (going.value = false) : void go())}>
            {going.value ? t('pause') : t('resume')}
          </Button>
        )}
      </div>
    </>
  );
}
