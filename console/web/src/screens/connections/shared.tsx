import type {Connection} from '@idplatform/sdk';
import {Status} from '../../ui/basics';
import {providers, t} from './text';

export const scope = 'identity-sources:write';

/** providerName is what people call a provider; of one that is not known here, the name that it brings. */
export function providerName({provider_code: code, name}: {provider_code: string; name: string}): string {
  const word = providers.word('', code);
  return word === code ? name : word;
}

export const nameOf = (c: Connection) => c.display_name || providerName(c);

export const picture = (logo: string) => (logo.startsWith('data:image/') ? logo : undefined);

export function State({status}: {status: '1' | '0'}) {
  return <Status tone={status === '1' ? 'good' : 'off'}>{t(status === '1' ? 'enabled' : 'disabled')}</Status>;
}
