// The tenants of the platform, and the way to another.
import {useSignal} from '@preact/signals';
import {listTenants, type Tenant} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {go, href, place} from '../../lib/router';
import {session} from '../../lib/session';
import {Button, Tag} from '../../ui/basics';
import {Dialog} from '../../ui/dialog';
import {List, type Query} from '../../ui/list';
import {TextField} from '../../ui/record';
import {t} from './text';

const enough = 50; // matches after which a page is full

async function load(query: Query, token: string | undefined, signal: AbortSignal) {
  const words = query.q.trim().toLowerCase();
  const items: Tenant[] = [];
  let next = token;
  do {
    const page = await call(listTenants({query: {page_size: 200, page_token: next, count: 'false'}, signal}));
    items.push(...page.items.filter((x) => x.id.includes(words)));
    next = page.next_page_token;
  } while (next && items.length < enough);
  return {items, next_page_token: next};
}

const start = (tenant: string) => href('start', [], {}, tenant);

export function Tenants() {
  const asking = useSignal(false);
  const other = (
    <Button
      icon="globe"
      scope="platform:admin"
      onClick={() => {
        asking.value = true;
      }}
    >
      {t('openTenant')}
    </Button>
  );
  return (
    <>
      <div class="settings-lead row spread wrap">
        <p class="muted">{t('tenantsText')}</p>
        {other}
      </div>
      <List<Tenant>
        name="tenants"
        title={t('tenants')}
        header={false}
        rowId={(x) => x.id}
        rowName={(x) => x.id}
        rowHref={(x) => start(x.id)}
        load={load}
        search={t('searchTenants')}
        empty={{icon: 'globe', title: t('noTenants'), text: t('noTenantsText'), action: other}}
        columns={[
          {
            key: 'id',
            header: t('tenant'),
            cell: (x) => (
              <span class="row">
                <span class="mono clip">{x.id}</span>
                {x.id === place.value.tenant && <Tag accent>{t('shown')}</Tag>}
                {x.id === session.value.tenant_id && <Tag>{t('own')}</Tag>}
              </span>
            ),
          },
        ]}
      />
      {asking.value && (
        <Open
          close={() => {
            asking.value = false;
          }}
        />
      )}
    </>
  );
}

function Open({close}: {close: () => void}) {
  const name = useSignal('');
  const off = !/^[a-z0-9_-]{1,63}$/.test(name.value);
  const open = (e: Event) => {
    e.preventDefault();
    if (!off) void go(start(name.value), {force: true});
  };
  return (
    <Dialog
      title={t('openTenant')}
      onClose={close}
      foot={
        <Button kind="primary" disabled={off} onClick={open}>
          {t('open')}
        </Button>
      }
    >
      <form onSubmit={open}>
        <TextField
          label={t('tenant')}
          help={t('tenantHelp')}
          mono
          value={name.value}
          set={(v) => {
            name.value = v.toLowerCase();
          }}
        />
      </form>
    </Dialog>
  );
}
