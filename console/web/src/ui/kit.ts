// Every screen but the first imports this, so that what they share is one file: it is loaded once, at once.
import '@idplatform/sdk';
import '../lib/ndjson';
import '../lib/pages';
import '../lib/poll';
import '../lib/stream';
import './audit';
import './impact';
import './jsonfield';
import './linediff';
import './list';
import './live';
import './live-table';
import './origin';
import './record';
import './schemaform';
import './secret';
import './undo';
