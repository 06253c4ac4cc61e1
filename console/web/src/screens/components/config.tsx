// The settings of a component: a form made of its schema, or JSON.
import type {ApiError} from '../../lib/api';
import {isObject, type Fields} from '../../lib/patch';
import {param, setQuery} from '../../lib/router';
import {JsonField} from '../../ui/jsonfield';
import {SchemaForm, type Schema} from '../../ui/schemaform';
import {t} from './text';

interface Props {
  schema: unknown; // or NotJson
  value: unknown; // or NotJson
  set: (value: unknown) => void;
  error?: ApiError;
  fault?: string;
  readOnly?: boolean;
  changed?: boolean;
}

export function ConfigFields({schema, value, set, error, fault, readOnly, changed}: Props) {
  const drawable = isObject(schema) && Object.keys((schema as Schema).properties ?? {}).length > 0;
  const editable = isObject(value);
  const asForm = drawable && editable && param('as') !== 'json';
  return (
    <div class="stack">
      {drawable && (
        <div class="chips" role="group" aria-label={t('showAs')}>
          {(['form', 'json'] as const).map((as) => (
            <button
              key={as}
              type="button"
              class={(as === 'form') === asForm ? 'chip on' : 'chip'}
              aria-pressed={(as === 'form') === asForm}
              disabled={as === 'form' && !editable}
              onClick={() => void setQuery({as: as === 'json' ? as : null}, {replace: true, force: true})}
            >
              {t(as)}
            </button>
          ))}
        </div>
      )}
      {asForm ? (
        <SchemaForm
          schema={schema as Schema}
          value={value as Fields}
          set={set}
          error={error}
          at="config"
          readOnly={readOnly}
        />
      ) : (
        <JsonField
          label={t('config')}
          help={drawable ? undefined : t('noForm')}
          value={value}
          set={set}
          error={fault}
          readOnly={readOnly}
          changed={changed}
        />
      )}
    </div>
  );
}
