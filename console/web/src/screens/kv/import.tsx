// Objects out of a file: what it has, what happens to keys that are taken, and how far it is.
import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {saveFile} from '../../lib/csv';
import {changed} from '../../lib/load';
import {Button} from '../../ui/basics';
import {Dialog} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {t as ui} from '../../ui/text';
import {Choices} from '../subscriptions/create';
import {scope} from './buckets';
import {t} from './text';
import {fileType, readItems, writeItem, type BadLine, type Item} from './transfer';

const atOnce = 4; // writes that are under way together

interface Run {
  written: number;
  skipped: number;
  failed: (BadLine | (Item & {why: string}))[];
  ended: boolean;
}

export function ImportDialog({bucket, close}: {bucket: string; close: () => void}) {
  const input = useRef<HTMLInputElement>(null);
  const file = useSignal<{name: string; items: Item[]; bad: BadLine[]} | undefined>(undefined);
  const existing = useSignal<'skip' | 'replace'>('skip');
  const run = useSignal<Run | undefined>(undefined);
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  const {items = [], bad = [], name = ''} = file.value ?? {};
  const start = async () => {
    run.value = {written: 0, skipped: 0, failed: [...bad], ended: false};
    const note = (news: Partial<Run>) => {
      run.value = {...run.value!, ...news};
    };
    const left = [...items];
    const {signal} = abort.current;
    const work = async () => {
      for (let item = left.shift(); item && !signal.aborted; item = left.shift()) {
        const outcome = await writeItem(bucket, item, existing.value === 'replace', signal);
        if (outcome === 'written' || outcome === 'skipped') note({[outcome]: run.value![outcome] + 1});
        else if (!signal.aborted) note({failed: [...run.value!.failed, {...item, why: outcome.failed}]});
      }
    };
    await Promise.all(Array.from({length: atOnce}, work));
    note({ended: true});
    changed('kv-objects');
  };
  const r = run.value;
  return (
    <Dialog
      wide
      title={t('importTitle', {name: bucket})}
      onClose={close}
      foot={
        r ? (
          <>
            {r.ended && r.failed.length > 0 && (
              <Button class="start" icon="download" onClick={() => saveFailures(bucket, r)}>
                {t('saveFailures')}
              </Button>
            )}
            <Button kind={r.ended ? 'primary' : undefined} onClick={r.ended ? close : () => abort.current.abort()}>
              {r.ended ? ui('done') : t('stop')}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={close}>{ui('cancel')}</Button>
            <Button kind="primary" scope={scope} disabled={!items.length} onClick={() => void start()}>
              {t('importDo')}
            </Button>
          </>
        )
      }
    >
      {r ? (
        <Progress run={r} all={items.length} />
      ) : (
        <>
          <p class="muted">{t('importText')}</p>
          <div class="row wrap">
            <Button icon="upload" onClick={() => input.current!.click()}>
              {t('importChoose')}
            </Button>
            {file.value && <span class="num">{t('importLines', {n: items.length, file: name})}</span>}
          </div>
          <input
            ref={input}
            type="file"
            accept=".ndjson,.jsonl,.json,.txt"
            hidden
            onChange={async (e) => {
              const chosen = e.currentTarget.files?.[0];
              if (chosen) file.value = {name: chosen.name, ...readItems(await chosen.text())};
            }}
          />
          {bad.length > 0 && <BadLines bad={bad} title={t('importBad', {n: bad.length})} />}
          <Choices
            legend={t('existing')}
            name="existing"
            value={existing.value}
            choose={(v) => {
              existing.value = v as 'skip';
            }}
            options={[
              {value: 'skip', label: t('skip'), help: t('skipHelp')},
              {value: 'replace', label: t('replace'), help: t('replaceHelp')},
            ]}
          />
        </>
      )}
    </Dialog>
  );
}

function BadLines({bad, title}: {bad: BadLine[]; title: string}) {
  return (
    <div class="note warn" role="status">
      <Icon name="alert" />
      <div class="grow">
        <div class="title">{title}</div>
        <ul>
          {bad.slice(0, 5).map((b) => (
            <li key={b.line}>{t('importBadLine', {n: b.line, why: b.why})}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function Progress({run: r, all}: {run: Run; all: number}) {
  const failed = r.failed.filter((f) => 'key' in f);
  const done = r.written + r.skipped + failed.length;
  return (
    <div class="stack" role="status">
      <progress class="kv-progress" max={all} value={done} aria-label={t('ofAll', {n: done, all})} />
      <div class="row wrap num">
        <strong>{t('ofAll', {n: done, all})}</strong>
        <span>{t('written', {n: r.written})}</span>
        <span class="muted">{t('skipped', {n: r.skipped})}</span>
        {r.failed.length > 0 && <span class="wrong">{t('failed', {n: r.failed.length})}</span>}
      </div>
      {r.failed.length > 0 && <BadLines bad={r.failed} title={t('failed', {n: r.failed.length})} />}
    </div>
  );
}

function saveFailures(bucket: string, r: Run): void {
  saveFile(`${bucket}-failed.ndjson`, fileType, r.failed.map((f) => f.text + '\n').join(''));
}
