import './screens'; // before what shows them
import {render} from 'preact';
import {useEffect} from 'preact/hooks';
import {useSignal} from '@preact/signals';
import './lib/theme';
import {go, href, place} from './lib/router';
import {failure, refresh, session} from './lib/session';
import {Layers} from './ui/dialog';
import {Shell} from './ui/shell';
import {SignedInTab} from './ui/issuer';
import {SignInAgain, SignInPage} from './ui/signin';

function App() {
  const known = useSignal(session.value.signed_in);
  useEffect(() => {
    if (!known.value)
      refresh()
        .catch(() => undefined)
        .finally(() => {
          known.value = true;
        });
  }, []);
  const signedIn = session.value.signed_in;
  const {tenant, signIn, screen, query} = place.value;
  const forTab = signedIn && !failure.value && signIn && query.has('back');
  const home = signedIn && !failure.value && !forTab && (!tenant || !screen);
  useEffect(() => {
    if (home && !place.value.hash) {
      void go(href('start', [], {}, tenant || (session.value.tenant_id ?? 'default')), {replace: true, force: true});
    }
  }, [home]);
  if (!known.value) return null;
  if (forTab) return <SignedInTab />;
  const within = signedIn && !failure.value;
  return (
    <>
      {within && !home ? <Shell /> : (!within || place.value.hash) && <SignInPage />}
      <SignInAgain />
      <Layers />
    </>
  );
}

render(<App />, document.getElementById('app')!);
