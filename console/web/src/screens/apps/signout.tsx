// How an application that signs people in by SAML hears that they have signed out.
import type {Application, SignInProp} from '@idplatform/sdk';
import {SelectField, TextField, type Draft} from '../../ui/record';
import {t} from './text';

type Member = 'slo_url' | 'slo_binding' | 'slo_soap_url';

export function SignOut({draft}: {draft: Draft<Application>}) {
  const prop = (draft.get('sign_in_prop') ?? {}) as SignInProp;
  const set = (member: Member) => (value: string) => {
    const {[member]: _, ...others} = prop;
    draft.set('sign_in_prop', value ? {...others, [member]: value} : others); // what was emptied goes
  };
  const field = (member: Member) => ({
    value: prop[member] ?? '',
    set: set(member),
    error: draft.fault(`sign_in_prop.${member}`),
    changed: prop[member] !== draft.base.value.sign_in_prop?.[member],
  });
  return (
    <section class="section">
      <h3>{t('samlSignOut')}</h3>
      <div class="grid-2">
        <TextField wide label={t('sloUrl')} help={t('sloHelp')} readOnly={draft.readOnly} {...field('slo_url')} />
        <SelectField label={t('sloBinding')} disabled={draft.readOnly} {...field('slo_binding')}>
          <option value="">—</option>
          <option value="redirect">{t('sloRedirect')}</option>
          <option value="post">{t('sloPost')}</option>
        </SelectField>
        <TextField
          wide
          label={t('sloSoap')}
          help={t('sloSoapHelp')}
          readOnly={draft.readOnly}
          {...field('slo_soap_url')}
        />
      </div>
    </section>
  );
}
