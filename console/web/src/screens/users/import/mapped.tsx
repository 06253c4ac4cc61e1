// The columns of the file, and a trial of its first lines.
import {useSignal} from '@preact/signals';
import {asProblem, type ApiError} from '../../../lib/api';
import {importLines, type LineResult} from '../../../lib/ndjson';
import {Button, Failed} from '../../../ui/basics';
import {memberWord} from '../../../ui/members';
import {SelectField} from '../../../ui/record';
import {guess, members, type Member, type Table} from './columns';
import {Results} from './results';
import {Run} from './run';
import {t} from './text';

const trial = 100; // lines

export function Mapped({file, close, other}: {file: Table; close: () => void; other: () => void}) {
  const map = useSignal<(Member | '')[]>(file.headings.map(guess));
  const conflict = useSignal<'fail' | 'skip' | 'update'>('fail');
  const tried = useSignal<LineResult[] | null>(null);
  const busy = useSignal(false),
    error = useSignal<ApiError | undefined>(undefined);
  const importing = useSignal(false);
  const records = () =>
    file.rows.map((row) =>
      Object.fromEntries(map.value.map((m, i) => [m, row[i]?.trim() ?? '']).filter(([m, v]) => m && v)),
    );
  const ok = map.value.includes('username');
  const attempt = async () => {
    busy.value = true;
    error.value = undefined;
    try {
      tried.value = await importLines(records().slice(0, trial), {conflict: conflict.value, dryRun: true});
    } catch (e) {
      error.value = asProblem(e);
    } finally {
      busy.value = false;
    }
  };
  if (importing.value) return <Run file={file} records={records()} conflict={conflict.value} close={close} />;
  return (
    <>
      <div class="row spread">
        <span>
          <strong>{file.name}</strong> <span class="muted num">{t('lines', {n: file.rows.length})}</span>
        </span>
        <Button kind="ghost" small onClick={other}>
          {t('another')}
        </Button>
      </div>
      <section class="section">
        <h3>{t('map')}</h3>
        <div class="grid-2">
          {file.headings.map((h, i) => (
            <label class="field" key={i}>
              <span class="label">
                {h || `#${i + 1}`} <span class="faint clip">{file.rows[0]?.[i]}</span>
              </span>
              <select
                class="select"
                value={map.value[i]}
                onChange={(e) => {
                  const value = e.currentTarget.value as Member | '';
                  map.value = map.value.map((m, k) => (k === i ? value : m === value ? '' : m));
                  tried.value = null;
                }}
              >
                <option value="">{t('ignore')}</option>
                {members.map((m) => (
                  <option key={m} value={m}>
                    {memberWord('user', m)}
                  </option>
                ))}
              </select>
            </label>
          ))}
        </div>
        {!ok && <span class="error">{t('needName')}</span>}
      </section>
      <SelectField
        label={t('conflict')}
        value={conflict.value}
        set={(v) => {
          conflict.value = v as 'fail';
          tried.value = null;
        }}
      >
        <option value="fail">{t('fail')}</option>
        <option value="skip">{t('skip')}</option>
        <option value="update">{t('update')}</option>
      </SelectField>
      {error.value && <Failed error={error.value} again={() => void attempt()} />}
      {tried.value && <Results results={tried.value} records={records()} title={t('tried')} />}
      <div class="row" style={{justifyContent: 'flex-end'}}>
        <Button
          kind={tried.value ? undefined : 'primary'}
          disabled={!ok}
          busy={busy.value}
          onClick={() => void attempt()}
        >
          {t('preview', {n: Math.min(trial, file.rows.length)})}
        </Button>
        {tried.value && (
          <Button
            kind="primary"
            onClick={() => {
              importing.value = true;
            }}
          >
            {t('start', {n: file.rows.length})}
          </Button>
        )}
      </div>
    </>
  );
}
