// Grants: rules, who has them, and the resources and sets that they are about.
import '../../ui/kit';
import {go, href, place} from '../../lib/router';
import {Button, Tabs} from '../../ui/basics';
import {setQuery, param} from '../../lib/router';
import {Grant} from './grant';
import {Resources} from './resources';
import {Rules} from './rules';
import {Sets} from './sets';
import {Units} from './units';
import {t} from './text';

export default function Grants() {
  const tab = place.value.rest[0] ?? 'rules';
  const tabs = [
    {name: 'rules', label: t('rules')},
    {name: 'units', label: t('units')},
    {name: 'resources', label: t('resources')},
    {name: 'sets', label: t('sets')},
  ];
  const current = tabs.some((x) => x.name === tab) ? tab : 'rules';
  const Part = {rules: Rules, units: Units, resources: Resources, sets: Sets}[current]!;
  const app = param('app');
  return (
    <div class="grants">
      <header class="screen-head">
        <h1>{t('grants')}</h1>
        <div class="actions">
          <a class="btn" href={href('explorer')}>
            {t('toExplorer')}
          </a>
          <Button kind="primary" icon="plus" scope="permissions:write" onClick={() => void setQuery({grant: 1})}>
            {t('grant')}
          </Button>
        </div>
      </header>
      <Tabs
        tabs={tabs}
        current={current}
        label={t('grants')}
        choose={(name) => void go(href('grants', name === 'rules' ? [] : [name], {app}))}
      />
      <div class="grants-body">
        <Part key={current} />
      </div>
      {param('grant') && <Grant close={() => void setQuery({grant: null}, {replace: true})} />}
    </div>
  );
}
