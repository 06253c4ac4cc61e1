import type {ComponentChildren} from 'preact';
import {AuditTab} from '../audit';
import {JsonView} from '../basics';
import {t} from '../text';
import {ConflictDialog} from './conflict';
import type {Draft} from './draft';
import {Panel, type PanelTab} from './panel';
import {Faults, SaveBar} from './save';

export interface RecordPanelProps<T> {
  title: string;
  subtitle?: ComponentChildren;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  record: T & {id: string; version: number}; // as it is saved
  entity: string; // of its audit entries
  overview: () => ComponentChildren;
  tabs?: PanelTab[]; // between the overview and the audit
  draft?: Draft<T>; // without it nothing can be saved
  labels?: Record<string, string>; // of the members of the form
}

/** RecordPanel is the panel that every record has: overview with the form, what is related, audit, JSON. */
export function RecordPanel<T extends object>(p: RecordPanelProps<T>) {
  const {draft, record} = p;
  return (
    <>
      <Panel
        title={p.title}
        subtitle={p.subtitle}
        lead={p.lead}
        actions={p.actions}
        foot={draft && <SaveBar draft={draft} />}
        tabs={[
          {
            name: 'overview',
            label: t('overview'),
            content: () => (
              <>
                <Faults error={draft?.error.value} />
                {p.overview()}
              </>
            ),
          },
          ...(p.tabs ?? []),
          {
            name: 'audit',
            label: t('audit'),
            content: () => <AuditTab entity={p.entity} record={record.id} version={record.version} />,
          },
          {name: 'json', label: t('json'), content: () => <JsonView value={record} />},
        ]}
      />
      {draft && <ConflictDialog draft={draft} labels={p.labels ?? {}} entity={p.entity} />}
    </>
  );
}

/** labelsOf are the labels of a form's members, for the panel of a record. */
export function labelsOf(fields: {field: string; label: string}[]): Record<string, string> {
  return Object.fromEntries(fields.map((f) => [f.field, f.label]));
}
