// What uses a record, as a delete that is only tried says it.
import type {ComponentChildren} from 'preact';
import {asProblem, type ApiError} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {own} from '../../lib/own';
import {href} from '../../lib/router';
import {may} from '../../lib/session';
import {Blank, Failed, Late} from '../../ui/basics';
import {t as ui} from '../../ui/text';
import {partHref} from './frame';
import {t} from './text';

interface Use {
  what: string;
  count: number;
}

const known = ['stored_credentials', 'applications', 'auth_methods', 'auth_templates'] as const;
type Known = (typeof known)[number];

function usesOf(error: ApiError): Use[] {
  return (error.problem.errors ?? []).map((e) => ({what: e.location.replace(/^body\./, ''), count: e.count ?? 0}));
}

const said = ({what, count}: Use) =>
  known.includes(what as Known) ? t(`use_${what as Known}`, {n: count}) : `${what}: ${count}`;

/** refusal says why a record cannot be deleted: what uses it. */
export function refusal(error: ApiError): string {
  if (error.problem.code !== 'in_use') return error.message;
  return t('inUse', {uses: usesOf(error).map(said).join(', ')});
}

const links: Record<string, () => string> = {
  applications: () => href('apps'),
  auth_methods: () => partHref('methods'),
  auth_templates: () => partHref('templates'),
};

/** Uses shows how many records of each kind use one; `more` names them where their service can. */
export function Uses({
  of,
  version,
  scope,
  dry,
  more,
}: {
  of: string;
  version: number;
  scope: string;
  dry: () => Promise<unknown>;
  more?: ComponentChildren;
}) {
  const allowed = may(scope);
  const {state, again} = useLoad(
    allowed ? `uses ${of} ${version}` : null,
    async (): Promise<{uses: Use[]; stays?: string}> => {
      try {
        await dry();
        return {uses: []};
      } catch (e) {
        const problem = asProblem(e);
        if (problem.problem.code === 'in_use') return {uses: usesOf(problem)};
        if (problem.problem.code === 'invalid_state') return {uses: [], stays: problem.message};
        throw problem;
      }
    },
  );
  const {value, error, busy} = state.value;
  if (!allowed) return <p class="muted">{ui('needsScope', {scope})}</p>;
  if (error) return <Failed error={error} again={again} />;
  if (value?.stays) {
    return (
      <>
        <p class="note" lang="en">
          {value.stays}
        </p>
        {more}
      </>
    );
  }
  if (value && !value.uses.length) {
    return (
      <Blank icon="link" title={t('unusedTitle')}>
        {t('unusedText')}
      </Blank>
    );
  }
  return (
    <Late busy={busy && !value} lines={4}>
      <p class="muted">{t('usesText')}</p>
      <ul class="cards">
        {value?.uses.map((u) => {
          const link = own(links, u.what);
          return (
            <li key={u.what} class="card row spread">
              <span class="num">{said(u)}</span>
              {link && <a href={link()}>{t('open')}</a>}
            </li>
          );
        })}
      </ul>
      {more}
    </Late>
  );
}
