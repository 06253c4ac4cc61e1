import {listApplications} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {tellName} from '../../lib/names';
import {href} from '../../lib/router';
import {may} from '../../lib/session';
import {Blank} from '../../ui/basics';
import type {Filter} from '../../ui/list';
import {findApps, nameOf} from './sources';
import {t} from './text';

/** useAppFilter is the chip that chooses an application: one of the newest, or one that is found by its name. */
export function useAppFilter(): Filter & {ready: boolean} {
  const {state} = useLoad(may('applications:read') ? 'apps' : null, (signal) =>
    call(listApplications({query: {page_size: 12, page_sort: 'time_created[desc]', count: 'false'}, signal})),
  );
  const items = state.value.value?.items ?? [];
  for (const a of items) tellName('application', a.id, a.name);
  return {
    param: 'app',
    label: t('application'),
    options: items.map((a) => ({value: a.id, label: a.name})),
    find: findApps,
    shown: (id) => nameOf('application', id),
    ready: !state.value.busy,
  };
}

/** NoApps takes the place of a list that belongs to an application. */
export function NoApps() {
  return (
    <Blank
      icon="app"
      title={t('noApps')}
      action={
        <a class="btn" href={href('apps')}>
          {t('toApps')}
        </a>
      }
    >
      {t('noAppsText')}
    </Blank>
  );
}
