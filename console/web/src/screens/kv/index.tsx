// Key-value storage: the buckets, and the objects of one.
import '../../ui/kit';
import {place} from '../../lib/router';
import {Buckets} from './buckets';
import {Objects} from './objects';

export default function KeyValue() {
  const bucket = place.value.rest[0];
  return bucket ? <Objects key={bucket} name={bucket} /> : <Buckets />;
}
