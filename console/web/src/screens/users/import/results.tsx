// What became of the lines.
import type {LineResult} from '../../../lib/ndjson';
import {Status} from '../../../ui/basics';
import {t as users} from '../text';
import {t} from './text';

function count(results: LineResult[], status: string): number {
  return results.filter((r) => r.status === status).length;
}

export function Summary({results}: {results: LineResult[]}) {
  return (
    <p class="num" role="status">
      {t('result', Object.fromEntries(['created', 'updated', 'skipped', 'failed'].map((s) => [s, count(results, s)])))}
    </p>
  );
}

export function reason(r: LineResult): string {
  return (r.errors ?? []).map((e) => `${e.location.replace(/^body\./, '')} ${e.message}`).join('; ');
}

export function Results({
  results,
  records,
  title,
}: {
  results: LineResult[];
  records: Record<string, string>[];
  title?: string;
}) {
  const word = (s: string) => t((['created', 'updated', 'skipped', 'failed'].includes(s) ? s : 'failed') as 'created');
  return (
    <section class="section">
      {title && (
        <div class="row spread">
          <h3>{title}</h3>
          <span class="muted">
            <Summary results={results} />
          </span>
        </div>
      )}
      <div class="users-results" tabIndex={0}>
        <table class="diff">
          <thead>
            <tr>
              <th scope="col" style={{width: '64px'}}>
                {t('line')}
              </th>
              <th scope="col">{users('username')}</th>
              <th scope="col">{title ? t('wouldBe') : t('outcome')}</th>
            </tr>
          </thead>
          <tbody>
            {results.map((r) => (
              <tr key={r.line}>
                <td class="num muted">{r.line}</td>
                <td class="mono">{records[r.line - 1]?.username}</td>
                <td>
                  <Status tone={r.status === 'failed' ? 'bad' : r.status === 'skipped' ? 'off' : 'good'}>
                    {word(r.status)}
                  </Status>{' '}
                  <span class="muted" lang="en">
                    {reason(r)}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
