// Pictures that the API has: of people and of applications.
import {useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {call, client} from './api';
import {useLoad} from './load';
import {otherTenant} from './session';

/** useBlobUrl is an address of a picture in memory, until another takes its place. */
export function useBlobUrl(blob: Blob | undefined): string | undefined {
  const url = useSignal<string | undefined>(undefined);
  useEffect(() => {
    url.value = blob && URL.createObjectURL(blob);
    return () => {
      if (url.value) URL.revokeObjectURL(url.value);
    };
  }, [blob]);
  return url.value;
}

/**
 * usePicture is where an image element finds a picture: `data:`, or a path of the API. Such an element cannot name
 * another tenant, so pictures of one are read through the client.
 */
export function usePicture(src: string | undefined): string | undefined {
  const ofAPI = src?.startsWith('/v1/') ?? false;
  const tenant = ofAPI ? otherTenant.value : undefined;
  const read = useLoad(tenant ? `${tenant} ${src}` : null, (signal) =>
    call(client.get<{200: Blob}>({url: src!, parseAs: 'blob', signal})),
  );
  const inMemory = useBlobUrl(tenant ? (read.state.value.value as Blob | undefined) : undefined);
  if (tenant) return inMemory;
  return ofAPI ? `/console/api${src}` : src;
}
