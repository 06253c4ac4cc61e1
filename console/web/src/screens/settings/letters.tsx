// Dead letters: events that a service could not handle, for the operators of the platform.
import {deleteDeadLetter, getDeadLetter, listDeadLetters, replayDeadLetter, type DeadLetter} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {param, setQuery} from '../../lib/router';
import {Button, Id, JsonView} from '../../ui/basics';
import {typeWords} from '../../ui/kinds';
import {List, type Query} from '../../ui/list';
import {Facts, Panel, PanelLoad, RecordMenu} from '../../ui/record';
import {carryOut} from '../../ui/undo';
import {t} from './text';

const scope = 'platform:admin';

function load(query: Query, token: string | undefined, signal: AbortSignal) {
  return call(
    listDeadLetters({
      signal,
      query: {
        consumer: query.q.trim() || undefined,
        page_size: 100,
        page_token: token,
        count: token ? 'false' : undefined,
      },
    }),
  );
}

const eventType = (l: DeadLetter) => String(l.event?.type ?? t('notEvent'));

export function Letters() {
  return (
    <>
      <div class="settings-lead">
        <p class="muted">{t('lettersText')}</p>
      </div>
      <List<DeadLetter>
        name="dead-letters"
        title={t('letters')}
        header={false}
        kind="dead-letters"
        rowId={(l) => l.id}
        rowName={eventType}
        load={load}
        search={t('searchConsumer')}
        empty={{icon: 'check', title: t('noLetters'), text: t('noLettersText')}}
        columns={[
          {key: 'event', header: t('event'), cell: (l) => <span title={eventType(l)}>{typeWords(eventType(l))}</span>},
          {key: 'consumer', header: t('consumer'), cell: (l) => <span class="mono">{l.consumer}</span>, priority: 2},
          {key: 'error', header: t('error'), cell: (l) => <span lang="en">{l.error}</span>, priority: 3},
          {
            key: 'since',
            header: t('since'),
            cell: (l) => <span title={dateTime(l.time_created)}>{ago(l.time_created)}</span>,
            width: '140px',
          },
        ]}
      />
    </>
  );
}

export function LetterPanel() {
  const id = param('open');
  if (!id) return null;
  return (
    <PanelLoad key={id} id={id} load={(signal) => call(getDeadLetter({path: {id}, signal}))}>
      {(letter) => <Loaded letter={letter} />}
    </PanelLoad>
  );
}

function Loaded({letter: l}: {letter: DeadLetter}) {
  const path = {id: l.id},
    headers = {'If-Match': `"${l.version}"`},
    consumer = l.consumer;
  const replay = async () => {
    const done = await carryOut({
      ask: {title: t('replayTitle', {consumer}), text: <p>{t('replayText')}</p>, yes: t('replay')},
      send: () => call(replayDeadLetter({path, headers})),
      said: t('replayed', {consumer}),
      after: () => changed('dead-letters'),
    });
    if (done) await setQuery({open: null, tab: null}, {force: true});
  };
  return (
    <Panel
      title={typeWords(eventType(l))}
      subtitle={<span class="mono clip">{l.consumer}</span>}
      actions={
        <>
          <Button icon="refresh" scope={scope} onClick={() => void replay()}>
            {t('replay')}
          </Button>
          <RecordMenu
            record={l}
            file={`dead-letter-${l.id}`}
            scope={scope}
            removal={{
              title: t('deleteTitle', {name: l.id}),
              text: t('deleteText'),
              typed: l.id,
              record: l,
              send: () => call(deleteDeadLetter({path, headers})),
              said: t('deletedDone'),
              kinds: ['dead-letters'],
            }}
          />
        </>
      }
      tabs={[
        {
          name: 'overview',
          label: t('letters'),
          content: () => (
            <>
              <p class="note bad" lang="en">
                {l.error}
              </p>
              <Facts
                facts={[
                  [t('consumer'), <span class="mono">{l.consumer}</span>],
                  [t('tenant'), <span class="mono">{l.tenant_id}</span>],
                  [t('tries'), <span class="num">{l.tries}</span>],
                  [t('since'), dateTime(l.time_created)],
                  [t('id'), <Id>{l.id}</Id>],
                ]}
              />
              <JsonView value={l.event} />
            </>
          ),
        },
      ]}
    />
  );
}
