// The members of a node, with or without those of all nodes below it.
import '../../ui/kit';
import {getTreeNode, listAncestors, listCoreObjects} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changes, useLoad} from '../../lib/load';
import {go, href, param, place, setQuery} from '../../lib/router';
import {Blank, Failed, Late} from '../../ui/basics';
import {NodePicker} from '../tree/picker';
import {MembersOf} from './list';
import {t} from './text';

export default function Members() {
  const id = place.value.rest[0];
  return id ? <OfNode key={id} id={id} /> : <Choose />;
}

/** Choose asks for a node, since members belong to one. */
function Choose() {
  const {state, again} = useLoad(`objects ${changes.value.objects ?? 0}`, (signal) => call(listCoreObjects({signal})));
  const {value, error, busy} = state.value;
  const object = value?.find((o) => o.code === param('tree')) ?? value?.[0];
  return (
    <section class="screen" aria-label={t('members')}>
      <header class="screen-head">
        <h1>{t('members')}</h1>
      </header>
      <div class="scroll">
        <div class="page">
          {error && <Failed error={error} again={again} />}
          <Late busy={busy && !value} lines={6}>
            {value?.length === 0 && (
              <Blank
                icon="tree"
                title={t('noTree')}
                action={
                  <a class="btn" href={href('tree')}>
                    {t('toTrees')}
                  </a>
                }
              >
                {t('noTreeText')}
              </Blank>
            )}
            {object && (
              <>
                <p class="muted">{t('chooseText')}</p>
                <div class="row wrap">
                  {value!.map((o) => (
                    <button
                      key={o.id}
                      type="button"
                      class={o === object ? 'chip on' : 'chip'}
                      aria-pressed={o === object}
                      onClick={() => void setQuery({tree: o.code}, {replace: true})}
                    >
                      {o.name}
                    </button>
                  ))}
                </div>
                <NodePicker
                  key={object.id}
                  object={object}
                  chosen={undefined}
                  label={t('node')}
                  choose={(n) => void go(href('members', [n.id]))}
                />
              </>
            )}
          </Late>
        </div>
      </div>
    </section>
  );
}

function OfNode({id}: {id: string}) {
  const {state, again} = useLoad(`${id} ${changes.value.nodes ?? 0} ${changes.value.members ?? 0}`, async (signal) => {
    const [node, above] = await Promise.all([
      call(getTreeNode({path: {id}, signal})),
      call(listAncestors({path: {id}, signal})),
    ]);
    return {node, above: [...(above ?? [])].reverse()};
  });
  const {value, error, busy} = state.value;
  if (error && !value)
    return (
      <section class="screen">
        <div class="page members-fault">
          <Failed error={error} again={again} />
          <div>
            <a class="btn" href={href('members')}>
              {t('chooseOther')}
            </a>
          </div>
        </div>
      </section>
    );
  if (!value)
    return (
      <section class="screen">
        <div class="page members-fault">
          <Late busy={busy} lines={8}>
            {null}
          </Late>
        </div>
      </section>
    );
  return <MembersOf node={value.node} above={value.above} />;
}
