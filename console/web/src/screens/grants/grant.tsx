// A new rule, which is read as a sentence while it is written. What reaches many is tried first.
import {useSignal} from '@preact/signals';
import {grantAuthRules, type AuthRuleInputWritable} from '@idplatform/sdk';
import {asProblem, call, type ApiError} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {param} from '../../lib/router';
import {Button} from '../../ui/basics';
import {Field, FormDialog, faultOf, SelectField, TextField, wordsIn} from '../../ui/record';
import {Impact} from '../../ui/impact';
import {CelField} from './cel';
import {Pick} from './pick';
import {grantWithUndo, ruleTypes} from './rules';
import {Party, Sentence} from './sentence';
import {findApps, findSets, findWho, nameOf, resourcesOf, whoOf} from './sources';
import {t} from './text';

export interface Start {
  // what is filled in already
  who?: string;
  app?: string;
  type?: AuthRuleInputWritable['type'];
  code?: string;
  actions?: string;
}

export function Grant({
  close,
  start = {},
  done,
  title,
}: {
  close: () => void;
  start?: Start;
  done?: () => void;
  title?: string;
}) {
  const who = useSignal(start.who ?? param('who')),
    app = useSignal(start.app ?? param('app'));
  const type = useSignal<AuthRuleInputWritable['type']>(start.type ?? 'data');
  const code = useSignal(start.code ?? ''),
    actions = useSignal(start.actions ?? ''),
    affect = useSignal<'affect' | 'deny'>('affect');
  const condition = useSignal(''),
    from = useSignal(''),
    to = useSignal(''),
    description = useSignal('');
  const more = useSignal(false);
  const identity = whoOf(who.value);
  const known =
    useLoad(app.value && code.value ? `${app.value} ${code.value}` : null, (signal) =>
      resourcesOf(app.value, code.value, signal),
    ).state.value.value ?? [];
  const resource = known.find((r) => r.type === type.value && r.code === code.value);
  const all = type.value === 'app' || actions.value.trim() === '';
  const moment = (text: string) => (text ? new Date(text).toISOString() : null);
  const rule: AuthRuleInputWritable = {
    application_id: app.value,
    type: type.value,
    affect: affect.value,
    condition: condition.value,
    description: description.value,
    valid_from: moment(from.value),
    valid_to: moment(to.value),
    ...(type.value === 'app' ? {} : {actions: all ? ['*'] : wordsIn(actions.value)}),
    ...(type.value === 'app'
      ? {}
      : type.value === 'res' && !code.value
        ? {resource_match_all_resources: '1' as const}
        : {code: code.value}),
  };
  const submit = async () => {
    const one = {
      identity_type: identity!.type as 'user',
      identity_id: identity!.id,
      identity_name: nameOf(identity!.type, identity!.id),
    };
    try {
      await call(grantAuthRules({query: {dry_run: 'true'}, body: {identities: [one], rules: [rule]}}));
      await grantWithUndo(one, rule, done);
    } catch (e) {
      const hidden = ['condition', 'valid_from', 'valid_to'];
      if (hidden.some((member) => fault(asProblem(e), member))) more.value = true;
      throw e;
    }
  };
  const lacking = !identity || !app.value || (!['app', 'res'].includes(type.value) && !code.value);
  return (
    <FormDialog
      wide
      title={title ?? t('grantTitle')}
      yes={t(affect.value === 'deny' ? 'forbidDo' : 'grantDo')}
      danger={affect.value === 'deny'}
      scope="permissions:write"
      disabled={lacking}
      submit={submit}
      done={close}
      close={close}
    >
      {(error) => (
        <>
          <p class="grants-rule" aria-live="polite">
            <Sentence
              rule={{...rule, code: code.value, condition: condition.value, affect: affect.value} as never}
              who={
                identity ? <Party type={identity.type} id={identity.id} /> : <span class="faint">{t('somebody')}</span>
              }
            />
          </p>
          {identity && ['node', 'core_object', 'everyone', 'group'].includes(identity.type) && (
            <p class="note">{t(`reach_${identity.type as 'node' | 'core_object' | 'everyone' | 'group'}`)}</p>
          )}
          <div class="grid-2">
            <Field label={t('who')} help={t('whoHelp')} error={faultOf(error, 'identities[0]')}>
              {(input) => (
                <Pick
                  label={t('choose')}
                  input={input}
                  value={who.value}
                  search={findWho}
                  choose={(v) => {
                    who.value = v;
                  }}
                  shown={identity && nameOf(identity.type, identity.id)}
                />
              )}
            </Field>
            <SelectField
              label={t('effect')}
              value={affect.value}
              set={(v) => {
                affect.value = v as 'deny';
              }}
            >
              <option value="affect">{t('mayDo')}</option>
              <option value="deny">{t('mustNot')}</option>
            </SelectField>
            <Field label={t('application')} error={fault(error, 'application_id')}>
              {(input) => (
                <Pick
                  label={t('choose')}
                  input={input}
                  value={app.value}
                  shown={nameOf('application', app.value)}
                  search={findApps}
                  choose={(v) => {
                    app.value = v;
                    code.value = '';
                  }}
                />
              )}
            </Field>
            <SelectField
              label={t('about')}
              error={fault(error, 'type')}
              value={type.value}
              set={(v) => {
                type.value = v as 'data';
                code.value = '';
              }}
            >
              {ruleTypes().map((o) => (
                <option key={o.value} value={o.value}>
                  {o.label}
                </option>
              ))}
            </SelectField>
            {type.value !== 'app' && (
              <Field
                label={t(type.value === 'res' ? 'pattern' : type.value === 'res_set' ? 'set' : 'resource')}
                help={type.value === 'res' ? t('patternHelp') : undefined}
                error={fault(error, 'code') ?? fault(error, 'resource_id') ?? fault(error, 'resource_set_id')}
              >
                {(input) =>
                  type.value === 'res' ? (
                    <input
                      class="input mono"
                      {...input}
                      value={code.value}
                      placeholder="invoices-*"
                      onInput={(e) => {
                        code.value = e.currentTarget.value;
                      }}
                    />
                  ) : (
                    <Pick
                      label={app.value ? t('choose') : t('chooseApp')}
                      input={input}
                      free
                      value={code.value}
                      disabled={!app.value}
                      choose={(v) => {
                        code.value = v;
                      }}
                      search={async (words, signal) =>
                        type.value === 'res_set'
                          ? findSets(app.value, words, signal)
                          : (await resourcesOf(app.value, words, signal))
                              .filter((r) => r.type === type.value)
                              .slice(0, 12)
                              .map((r) => ({
                                value: r.code,
                                label: r.name || r.code,
                                about: r.name ? r.code : '',
                                icon: 'box' as const,
                              }))
                      }
                    />
                  )
                }
              </Field>
            )}
            {type.value !== 'app' && (
              <TextField
                label={t('actions')}
                help={
                  resource?.actions.length
                    ? t('actionsOf', {list: resource.actions.map((a) => a.code).join(t('comma'))})
                    : t('actionsHelp')
                }
                error={fault(error, 'actions')}
                placeholder={t('anything')}
                value={actions.value}
                set={(v) => {
                  actions.value = v;
                }}
              />
            )}
          </div>
          {!more.value ? (
            <div>
              <Button
                small
                kind="ghost"
                icon="plus"
                onClick={() => {
                  more.value = true;
                }}
              >
                {t('moreFields')}
              </Button>
            </div>
          ) : (
            <div class="grid-2">
              <CelField
                value={condition.value}
                set={(v) => {
                  condition.value = v;
                }}
                error={fault(error, 'condition')}
              />
              <TextField
                label={t('validFrom')}
                error={fault(error, 'valid_from')}
                type="datetime-local"
                value={from.value}
                set={(v) => {
                  from.value = v;
                }}
              />
              <TextField
                label={t('validTo')}
                error={fault(error, 'valid_to')}
                type="datetime-local"
                value={to.value}
                set={(v) => {
                  to.value = v;
                }}
              />
              <TextField
                label={t('description')}
                wide
                error={fault(error, 'description')}
                value={description.value}
                set={(v) => {
                  description.value = v;
                }}
              />
            </div>
          )}
          {/* People by themselves: the sentence above says all. */}
          {!lacking && identity.type !== 'user' && (
            <Impact
              changes={{grant: [{identity: {identity_type: identity.type as 'node', identity_id: identity.id}, rule}]}}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}

function fault(error: ApiError | undefined, member: string): string | undefined {
  return faultOf(error, `rules[0].${member}`);
}
