import {Status} from '../../ui/basics';
import {t} from './text';

export const scope = 'identity-sources:write';

export const picture = (logo: string) => (logo.startsWith('data:image/') ? logo : undefined);

export function State({status}: {status: '1' | '0'}) {
  return <Status tone={status === '1' ? 'good' : 'off'}>{t(status === '1' ? 'enabled' : 'disabled')}</Status>;
}
